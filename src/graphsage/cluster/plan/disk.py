"""How fast the disk is when the page cache does not help: pages are dropped before each reading."""

import mmap
import os
import time
from pathlib import Path

import numpy as np

FILE_BYTES = 1 << 28
CHUNK = 1 << 22
READS = 1500
PAGE = 4096


def disk_rates(path: Path) -> tuple[float, float]:
    """Bytes a second in order, and reads of a page a second at random, through a memory map as training makes them."""
    _write(path)
    try:
        with path.open("rb") as file:
            _drop(file.fileno())
            begin = time.perf_counter()
            while file.read(CHUNK):
                pass
            in_order = FILE_BYTES / (time.perf_counter() - begin)
            _drop(file.fileno())
            places = np.random.default_rng(0).permutation(FILE_BYTES // PAGE)[:READS] * PAGE
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                mapped.madvise(mmap.MADV_RANDOM)
                begin = time.perf_counter()
                for place in places.tolist():
                    mapped[place]
                at_random = READS / (time.perf_counter() - begin)
        return in_order, at_random
    finally:
        path.unlink()


def _write(path: Path) -> None:
    block = np.random.default_rng(0).bytes(CHUNK)
    with path.open("wb") as file:
        for _ in range(FILE_BYTES // CHUNK):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())


def _drop(descriptor: int) -> None:
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
