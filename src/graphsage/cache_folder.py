"""Where things are kept that can be made again: text features, compiled kernels."""

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """GRAPHSAGE_CACHE, or the user's cache folder."""
    chosen = os.environ.get("GRAPHSAGE_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir

    try:
        folder = Path(user_cache_dir("graphsage"))
    except RuntimeError:  # a user whom the system does not know, as in containers
        folder = Path("~")
    return folder if folder.is_absolute() else Path(tempfile.gettempdir()) / f"graphsage-{os.getuid()}"
