"""Everything needed to resume a run bit for bit, in one safetensors file that is written atomically.

Random draws depend only on the seed and the step number, so weights, Adam's moments and a few counters suffice.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from graphsage.atomic import atomic_file
from graphsage.errors import BundleError, setting
from graphsage.execution.adam import Adam

FILE = "checkpoint.safetensors"
FORMAT = "4"  # 4: the settings by name


@dataclass
class TrainingState:
    """The counters of a run, and its best weights."""

    step: int = 0
    loss_sum: float = 0.0
    """Sum of this epoch's losses so far."""
    loss_steps: int = 0
    best_score: float | None = None
    last_score: float | None = None
    best_epoch: int = 0
    seconds: float = 0.0
    """Time spent training up to the last checkpoint, over all sessions."""
    stopped: bool = False
    """Early stopping ended the run."""
    best: dict[str, Tensor] = field(default_factory=dict)
    """The best weights so far, if they are to be kept."""


def save_checkpoint(folder: Path, module: nn.Module, optimizer: Adam, state: TrainingState, identity: str) -> None:
    """`identity` is JSON, the run's settings and a digest of its data; `read_checkpoint` refuses any other."""
    tensors = {f"weight.{name}": value for name, value in module.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in state.best.items()}
    for name, parameter in module.named_parameters():
        for moment, value in optimizer.state.get(parameter, {}).items():
            tensors[f"adam.{moment}.{name}"] = torch.as_tensor(value)
    counters = {name: value for name, value in asdict(state).items() if name != "best"}
    metadata = {"format": FORMAT, "progress": json.dumps(counters), "identity": identity}
    with atomic_file(folder / FILE) as temporary:
        # `save_file` reports a full disk as an error of its own; `write_bytes` raises OSError.
        temporary.write_bytes(
            save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, metadata)
        )


def read_checkpoint(folder: Path, identity: str) -> bytes:
    """The content of the checkpoint file, if it belongs to the run `identity`."""
    path = folder / FILE
    if not path.exists():
        raise BundleError(f"there is no checkpoint in {folder} to resume from; run without {setting('resume', True)}")
    try:
        content = path.read_bytes()
        load(content)
        metadata = _metadata(content)
        TrainingState(**json.loads(metadata["progress"]))
        saved = json.loads(metadata["identity"]) if metadata["format"] == FORMAT else {}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise BundleError(f"{path} is damaged ({error}); run without {setting('resume', True)}") from error
    if metadata.get("format") != FORMAT:
        raise BundleError(
            f"{path} has the checkpoint format of another graphsage version; run without {setting('resume', True)}"
        )
    asked = json.loads(identity)
    if saved != asked:
        old, new = saved["settings"], asked["settings"]
        names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
        changed = [f"{setting(name)} was {_word(old.get(name))} and is now {_word(new.get(name))}" for name in names]
        what = f"other settings ({'; '.join(changed)})" if changed else "other data"
        raise BundleError(
            f"{path} belongs to a run with {what}; resume with the same ones, or run without {setting('resume', True)}"
        )
    return content


def _word(value: Any) -> str:
    """A setting as it is written; a list as on the command line."""
    return "unset" if value is None else ",".join(map(str, value)) if isinstance(value, list) else str(value)


def restore(content: bytes, module: nn.Module, optimizer: Adam) -> TrainingState:
    """Restore weights and moments, and return the state of the run."""
    tensors, state = load(content), TrainingState(**json.loads(_metadata(content)["progress"]))
    parameters = dict(module.named_parameters())
    weights = {}
    for name, value in tensors.items():
        kind, rest = name.split(".", 1)
        if kind == "weight":
            weights[rest] = value
        elif kind == "best":
            state.best[rest] = value
        else:
            moment, parameter = rest.split(".", 1)
            if parameter not in parameters:
                raise BundleError(f"the checkpoint holds a parameter {parameter!r} that the model does not have")
            optimizer.state[parameters[parameter]][moment] = value.to(parameters[parameter].device)
    optimizer.restored()
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise BundleError(f"the checkpoint does not fit the model ({error})") from error
    return state


def _metadata(content: bytes) -> dict[str, str]:
    """The metadata of a safetensors file, which starts with the length of a JSON header and the header."""
    length = int.from_bytes(content[:8], "little")
    metadata: dict[str, str] = json.loads(content[8 : 8 + length])["__metadata__"]
    return metadata
