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
from graphsage.errors import OutputError

SOURCES = sorted(Path(__file__).parent.glob("*.[ch]"))
# Sums may be reordered, so that they are made in vectors. Not -ffast-math: linking with it would change how the whole
# process rounds.
FLAGS = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fassociative-math", "-fno-signed-zeros",
         "-fopenmp", "-fPIC", "-shared"]  # fmt: skip
FLAGS += ["-mprefer-vector-width=512"] if platform.machine() == "x86_64" else []
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
        said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) and error.stderr else str(error)
        _log.warning("kernels run in their torch form, as %s could not compile them: %s", compiler[0], said)
        return None


def call(name: str, *arguments: Tensor | int | float | None) -> None:
    """Run a kernel on as many threads as torch uses. Whole numbers are 64 bits wide there, others float32."""
    loaded = library()
    assert loaded is not None
    if getattr(loaded, name)(*(_argument(each) for each in (*arguments, torch.get_num_threads()))):
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
        command = shlex.split(name)
        if command and shutil.which(command[0]):
            return command
    return None


def _kept(compiler: list[str]) -> ctypes.CDLL:
    """Named by the sources, the flags and what the compiler knows of this processor: homes may be shared by several."""
    knows = subprocess.run([*compiler, "-march=native", "-E", "-dM", "-x", "c", os.devnull], check=True,
                           capture_output=True, timeout=60).stdout  # fmt: skip
    texts = [path.read_bytes() for path in SOURCES]
    name = hashlib.sha256(b"\0".join([*texts, *map(os.fsencode, [*compiler, *FLAGS]), knows])).hexdigest()[:32]
    path = cache_folder() / "kernels" / f"{name}.so"
    if path.exists() and _ours(path):
        with suppress(OSError):  # a damaged file is made again
            return ctypes.CDLL(str(path))
    try:
        with atomic_file(path) as temporary:
            _compile(compiler, temporary)
        if _ours(path):
            return ctypes.CDLL(str(path))
    except OutputError:
        pass
    with tempfile.TemporaryDirectory() as folder:  # a cache that cannot be written, or that others can write
        _compile(compiler, Path(folder) / "kernels.so")
        return ctypes.CDLL(str(Path(folder) / "kernels.so"))


def _compile(compiler: list[str], path: Path) -> None:
    sources = [str(source) for source in SOURCES if source.suffix == ".c"]
    command = [*compiler, *FLAGS, "-o", str(path), *sources, "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)


def _ours(path: Path) -> bool:
    """Whether nobody but this user, or root, can have put code there."""
    for place in (path, path.parent):
        about = place.stat()
        if about.st_uid not in (0, os.getuid()) or about.st_mode & 0o022:
            return False
    return True
