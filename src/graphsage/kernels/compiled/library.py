"""Compiles the C form of the kernels on first use, and caches it.

Without a compiler, or with GRAPHSAGE_COMPILE=0, kernels run in their torch form. The library does not depend on torch's
version, because kernels receive addresses and sizes.
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
# Sums may be reordered, so that they can be vectorized. Not -ffast-math: linking with it changes the rounding of the
# whole process.
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
PATIENCE = 120.0  # seconds; a compiler needs one or two
_log = logging.getLogger(__name__)


@cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels; None if they are disabled or cannot be compiled."""
    compiler = _compiler()
    if compiler is None or os.name != "posix" or os.environ.get("GRAPHSAGE_COMPILE", "1") == "0":
        return None
    try:
        return _loaded(compiler)
    except (OSError, subprocess.SubprocessError) as error:
        message = isinstance(error, subprocess.CalledProcessError) and error.stderr.strip()
        _log.warning("kernels run in their torch form: %s could not compile them: %s", compiler[0], message or error)
        return None


def call(name: str, *arguments: Tensor | int | float | None) -> None:
    """Run a kernel on as many threads as torch uses. It receives ints as int64 and floats as float32."""
    loaded = library()
    assert loaded is not None
    code = getattr(loaded, name)(*(_argument(each) for each in (*arguments, torch.get_num_threads())))
    if code & NO_MEMORY:
        raise MemoryError(f"{name}: out of memory")
    if code:
        raise IndexError(f"{name}: an index is out of range; the graph's arrays are inconsistent")


def _argument(value: Tensor | int | float | None) -> object:
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if isinstance(value, float):
        return ctypes.c_float(value)
    return None if value is None else ctypes.c_int64(value)


def _compiler() -> list[str] | None:
    """The command in CC, otherwise cc, gcc or clang."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        with suppress(ValueError):  # an unclosed quotation mark
            command = shlex.split(name)
            if command and shutil.which(command[0]):
                return command
    return None


def _loaded(compiler: list[str]) -> ctypes.CDLL:
    """The library for these sources, flags and this processor's macros: different machines may share a home folder."""
    macros = _output_of([*compiler, "-march=native", "-E", "-dM", "-x", "c", os.devnull])
    texts = [path.read_bytes() for path in SOURCES]
    name = hashlib.sha256(b"\0".join([*texts, *map(os.fsencode, [*compiler, *FLAGS]), macros.encode()])).hexdigest()[
        :32
    ]
    with suppress(OSError):  # a cache that is read-only, writable by others, or mounted noexec
        return _cached(compiler, cache_folder() / "kernels" / f"{name}.so")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.so"
        _compile(compiler, path)
        return ctypes.CDLL(str(path))


def _cached(compiler: list[str], path: Path) -> ctypes.CDLL:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not _private(path.parent):
        raise PermissionError(f"other users may write to {path.parent}")
    if path.exists() and _private(path):
        with suppress(OSError):  # a damaged file is compiled again
            return ctypes.CDLL(str(path))
    with atomic_file(path) as temporary:
        _compile(compiler, temporary)
    return ctypes.CDLL(str(path))


def _compile(compiler: list[str], path: Path) -> None:
    sources = [str(source) for source in SOURCES if source.suffix == ".c"]
    _output_of([*compiler, *FLAGS, "-o", str(path), *sources, "-lm"])


def _output_of(command: list[str]) -> str:
    """The standard output of a compiler."""
    return subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=PATIENCE,
    ).stdout


def _private(path: Path) -> bool:
    """Whether only this user or root can have written it."""
    status = path.stat()
    return status.st_uid in (0, os.getuid()) and not status.st_mode & 0o022
