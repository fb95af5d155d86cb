"""The C form of the kernels, made by the machine's own compiler when it is first wanted and kept in the cache folder.

It is an extra, never needed: without a compiler, or with GRAPHSAGE_COMPILE=0, kernels run in their torch form. Nothing
of it depends on torch's version: kernels get addresses and sizes.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from graphsage.atomic import atomic_file
from graphsage.cache_folder import cache_folder

SOURCES = sorted(Path(__file__).parent.glob("*.[ch]"))
# Sums may be reordered, so that they are made in vectors. Not -ffast-math: linking with it would change how the whole
# process rounds.
FLAGS = [
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fassociative-math",
    "-fno-signed-zeros",
    "-fopenmp",
    "-fPIC",
    "-shared",
]
FLAGS += ["-mprefer-vector-width=512"] if platform.machine() == "x86_64" else []
NO_MEMORY = 2  # common.h
PATIENCE = 120.0  # seconds for a compiler that needs one or two
_log = logging.getLogger(__name__)


@cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels; None where they cannot be had."""
    compiler = _compiler()
    if compiler is None or os.name != "posix" or os.environ.get("GRAPHSAGE_COMPILE", "1") == "0":
        return None
    try:
        return _kept(compiler)
    except (OSError, subprocess.SubprocessError) as error:
        said = isinstance(error, subprocess.CalledProcessError) and error.stderr.strip()
        _log.warning("kernels run in their torch form, as %s could not make them: %s", compiler[0], said or error)
        return None


def call(name: str, *arguments: Tensor | int | float | None) -> None:
    """Run a kernel on as many threads as torch uses. Whole numbers are 64 bits wide there, others float32."""
    loaded = library()
    assert loaded is not None
    found = getattr(loaded, name)(*(_argument(each) for each in (*arguments, torch.get_num_threads())))
    if found & NO_MEMORY:
        raise MemoryError(f"{name}: there is no memory left")
    if found:
        raise IndexError(f"{name}: an index is out of range; the graph's arrays do not fit together")


def _argument(value: Tensor | int | float | None) -> object:
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if isinstance(value, float):
        return ctypes.c_float(value)
    return None if value is None else ctypes.c_int64(value)


def _compiler() -> list[str] | None:
    """CC, or what is called cc, gcc or clang here."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        with suppress(ValueError):  # a quotation mark without its other half
            command = shlex.split(name)
            if command and shutil.which(command[0]):
                return command
    return None


def _kept(compiler: list[str]) -> ctypes.CDLL:
    """Named by the sources, the flags and what the compiler knows of this processor: homes may be shared by several."""
    knows = _said([*compiler, "-march=native", "-E", "-dM", "-x", "c", os.devnull])
    texts = [path.read_bytes() for path in SOURCES]
    name = hashlib.sha256(b"\0".join([*texts, *map(os.fsencode, [*compiler, *FLAGS]), knows.encode()])).hexdigest()[:32]
    with suppress(OSError):  # a cache that cannot be written, that others can write, or whose files may not be run
        return _cached(compiler, cache_folder() / "kernels" / f"{name}.so")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.so"
        _compile(compiler, path)
        return ctypes.CDLL(str(path))


def _cached(compiler: list[str], path: Path) -> ctypes.CDLL:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not _ours(path.parent):
        raise PermissionError(f"others may write to {path.parent}")
    if path.exists() and _ours(path):
        with suppress(OSError):  # a damaged file is made again
            return ctypes.CDLL(str(path))
    with atomic_file(path) as temporary:
        _compile(compiler, temporary)
    return ctypes.CDLL(str(path))


def _compile(compiler: list[str], path: Path) -> None:
    sources = [str(source) for source in SOURCES if source.suffix == ".c"]
    _said([*compiler, *FLAGS, "-o", str(path), *sources, "-lm"])


def _said(command: list[str]) -> str:
    """What a compiler wrote; it is asked nothing, and may write in any alphabet."""
    return subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=PATIENCE,
    ).stdout


def _ours(path: Path) -> bool:
    """Whether nobody but this user, or root, can have put code there."""
    about = path.stat()
    return about.st_uid in (0, os.getuid()) and not about.st_mode & 0o022
