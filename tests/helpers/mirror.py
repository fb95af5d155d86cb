"""A Debian mirror with a few hundred invented packages, in the format of the real ones."""

import bz2
import hashlib
import lzma
import random
from pathlib import Path

RELEASES = ("bullseye", "bookworm", "trixie", "forky", "sid")
SECTIONS = {
    "games": ("libsdl2-2.0-0", "game level score players puzzle arcade space editor"),
    "python": ("python3", "module import interpreter package class wrapper"),
    "graphics": ("gimp", "image picture paint color photo brush"),
    "libs": ("libc6", "library shared function runtime symbol linker"),
}
"""Each section's oldest package, which most others of it depend on, and the words it is described with."""
FILLERS = """a and are as at be by can for from has in into is it many more new of on one or other share some such than
that the then this to tool use used very was when which with write you your dig fight find high make much ore small
fast simple set full free open old good large"""


def write_mirror(folder: Path) -> None:
    """`folder/dists/RELEASE/main/binary-amd64/Packages.xz` and `.../i18n/Translation-en.bz2`; every release has all
    packages of the one before."""
    draw = random.Random(0)
    packages: list[str] = []
    long: list[str] = []
    for number, release in enumerate(RELEASES):
        for section, (oldest, words) in SECTIONS.items():
            names = [f"{section}-{release}-{i}" for i in range(12)]
            for name in ([oldest] if number == 0 else []) + names:
                short, more = (_text(draw, words.split()) for _ in range(2))
                digest = hashlib.md5(name.encode()).hexdigest()
                depends = "libc6 (>= 2.31)" if name == oldest else f"{oldest}, libc6 (>= 2.31) | libc6-udeb"
                packages.append(
                    f"Package: {name}\nInstalled-Size: {draw.randrange(9999)}\nSection: {section}\nDepends: {depends}\n"
                    f"Description: {short}\nDescription-md5: {digest}\n"
                )
                told = f"{short}\n {more}.\n .\n {draw.choice(FILLERS.split())}"
                long.append(f"Package: {name}\nDescription-md5: {digest}\nDescription-en: {told}\n")
        place = folder / "dists" / release / "main"
        (place / "binary-amd64").mkdir(parents=True)
        (place / "i18n").mkdir()
        (place / "binary-amd64" / "Packages.xz").write_bytes(lzma.compress("\n".join(packages).encode()))
        (place / "i18n" / "Translation-en.bz2").write_bytes(bz2.compress("\n".join(long).encode()))


def _text(draw: random.Random, words: list[str]) -> str:
    chosen = draw.sample(words, 3) + draw.sample(FILLERS.split(), 5)
    return " ".join(draw.sample(chosen, len(chosen)))
