"""Whether two graphs (or models) are the same, without reading a large one whole."""

import hashlib
import json
from pathlib import Path
from typing import Any

from graphsage.errors import DataError
from graphsage.inference.fingerprint import sampled_fingerprint

_READ = ("indptr", "indices", "features")


def graph_identity(folder: Path) -> dict[str, Any]:
    """Size, moment of writing, and a checksum of 64 pieces of each array that inference reads."""
    try:
        about = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        arrays = {name: sampled_fingerprint(folder / f"{name}.npy") for name in _READ if name in about["arrays"]}
        return {
            "nodes": about["nodes"],
            "stored_edges": about["stored_edges"],
            "directed": about["directed"],
            "arrays": arrays,
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder} is not a whole graph folder ({error}); save the graph again") from error


def model_identity(bundle: Path) -> dict[str, str]:
    """Checksums of a model's weights and of all that says how they are used."""
    config = json.loads((bundle / "config.json").read_text(encoding="utf-8"))
    used = {name: config[name] for name in ("encoder", "in_dim", "sampling", "degree_features", "seed")}
    return {
        "weights": config["sha256"]["model.safetensors"],
        "settings": hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest(),
    }
