"""Where things are kept that can be made again: text features, compiled kernels."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """GRAPHSAGE_CACHE, or the user's cache folder."""
    chosen = os.environ.get("GRAPHSAGE_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("graphsage"))
