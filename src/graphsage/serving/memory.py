"""Memory that was freed goes back to the system: building an index or a generation needs much of it for a moment."""

import ctypes
import gc


def give_back() -> None:
    """Where the C library knows how (glibc); elsewhere nothing happens."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return
