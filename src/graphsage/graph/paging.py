"""How the system pages a mapped file in: reading ahead pays where a table fits in memory, and costs otherwise."""

import ctypes
import mmap
import os
from pathlib import Path

from torch import Tensor

_PAGE = mmap.PAGESIZE


def read_ahead(tensor: Tensor, wanted: bool) -> bool:
    """Whether a page miss of `tensor` reads neighboring pages; False if the system has no such setting."""
    size = tensor.numel() * tensor.element_size()
    advice = getattr(mmap, "MADV_NORMAL" if wanted else "MADV_RANDOM", None)
    if advice is None or tensor.is_cuda or not size:
        return False
    start = tensor.data_ptr() // _PAGE * _PAGE
    libc = ctypes.CDLL(None, use_errno=True)
    length = ctypes.c_size_t(tensor.data_ptr() + size - start)
    return bool(libc.madvise(ctypes.c_void_p(start), length, ctypes.c_int(advice)) == 0)


def exceeds_memory(tensor: Tensor) -> bool:
    """Whether the table cannot stay in memory as a whole."""
    return not tensor.is_cuda and tensor.numel() * tensor.element_size() > memory_available()


def memory_available() -> int:
    """Bytes that this process may still use, page cache included: of the machine, or what its cgroup allows."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 1 << 62
    return min([free, *_cgroup_limits()])


def memory_size() -> int:
    """Bytes of memory of this machine, or the limit of the process's cgroup."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_cgroup_limits()])


def _cgroup_limits() -> list[int]:
    limits = []
    try:
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return []
    for _, controllers, place in groups:
        for file in (f"/sys/fs/cgroup/memory{place}/memory.limit_in_bytes", f"/sys/fs/cgroup{place}/memory.max"):
            if "memory" in controllers.split(",") or (not controllers and file.endswith("max")):
                try:
                    limits.append(int(Path(file).read_text()))
                except (OSError, ValueError):  # no such file, or "max"
                    continue
    return limits
