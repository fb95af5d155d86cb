"""A model on disk: `config.json` + `model.safetensors` (+ `features.json`, `features.safetensors`).

Nothing in it executes. `config.json` holds checksums of itself and of the other files. Only regular files are read.
"""

import dataclasses
import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.numpy import load as arrays_from_bytes
from safetensors.numpy import save as arrays_as_bytes
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_as_bytes
from torch import Tensor, nn

from graphsage.atomic import atomic_file
from graphsage.checksummed_json import CHECKSUM, verified, write_checksummed
from graphsage.errors import BundleError, ConfigError
from graphsage.evaluation.calibration import Calibration
from graphsage.features.limits import FeatureLimits
from graphsage.features.pipeline import FittedFeatures
from graphsage.features.structure import Structure
from graphsage.inference.fingerprint import checksum
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.model.heads import ClassHead, RegressionHead
from graphsage.model.links import LinkHead
from graphsage.regular_files import JSON_BYTES, parse_json, read_regular
from graphsage.sampling.minibatch import SamplingConfig
from graphsage.version import __version__

if TYPE_CHECKING:
    from graphsage.inference.model import Model

FORMAT = 7  # 7: relations; 6: links; 5: structural features, known labels, calibration, regression
_FILES = ("model.safetensors", "features.json", "features.safetensors")
_ADVICE = "copy the run again, or train the model again"
_PLAIN = (
    "inference",
    "label_inputs",
    "keep_features",
    "multilabel",
    "seed",
    "about",
)  # attributes of a Model as JSON values


def save_bundle(model: "Model", folder: Path, data: str | None = None) -> None:
    """Write each file atomically, and `config.json` with all checksums last; `data` is that of the run's kept data."""
    encoder, head = model.encoder, model.head
    if data is None and model.folder == folder.absolute():  # the run keeps its graph
        data = read_config(folder).get("data")
    tensors = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    if head is not None:
        tensors |= {f"head.{name}": value for name, value in head.state_dict().items()}
    if model.links is not None:
        tensors |= {f"links.{name}": value for name, value in model.links.state_dict().items()}
    if model.limits is not None:
        tensors["limits.largest"] = model.limits.largest
    with atomic_file(folder / "model.safetensors") as temporary:
        plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        temporary.write_bytes(tensors_as_bytes(plain))
    files = ["model.safetensors"]
    if model.features is not None:
        settings, arrays = model.features.state()
        with atomic_file(folder / "features.json") as temporary:
            temporary.write_text(json.dumps(settings, ensure_ascii=False), encoding="utf-8")
        with atomic_file(folder / "features.safetensors") as temporary:
            temporary.write_bytes(arrays_as_bytes(arrays))
        files += ["features.json", "features.safetensors"]
    config = {
        "format": FORMAT,
        "graphsage": __version__,
        "encoder": dataclasses.asdict(encoder.config),
        "in_dim": encoder.in_dim,
        "num_nodes": None if encoder.identity is None else encoder.identity.num_embeddings,
        "head": None
        if head is None
        else {
            "num_classes": head.linear.out_features,
            "scale": head.log_scale is not None,
            "regression": model.regression,
        },
        "links": None if model.links is None else model.links.settings(),
        "sampling": dataclasses.asdict(model.sampling),
        **{name: getattr(model, name) for name in (*_PLAIN, "class_names")},
        "structure": dataclasses.asdict(model.structure),
        "calibration": {
            "temperature": model.calibration.temperature,
            "thresholds": None if model.calibration.thresholds is None else model.calibration.thresholds.tolist(),
        },
        "limits": None if model.limits is None else {"multiple": model.limits.multiple},
        "data": data,
        "files": {name: checksum(folder / name) for name in files},
    }
    write_checksummed(folder / "config.json", config)


def load_bundle(folder: Path) -> "Model":
    from graphsage.inference.model import Model

    config = read_config(folder)
    files = _read_files(folder, config["files"])
    try:
        encoder_config = EncoderConfig(**{name: _tuple(value) for name, value in config["encoder"].items()})
        sampling = SamplingConfig(**{name: _tuple(value) for name, value in config["sampling"].items()})
        encoder = Encoder(encoder_config, config["in_dim"], config["num_nodes"])
        head = None
        if config["head"] is not None:
            kind = RegressionHead if config["head"]["regression"] else ClassHead
            head = kind(encoder_config.dim, config["head"]["num_classes"], scale=config["head"]["scale"])
        links = None if config["links"] is None else LinkHead(**config["links"])
        names = config["class_names"]
        structure = Structure(**config["structure"])
        rest = {name: config[name] for name in _PLAIN}
        calibration = _calibration(config["calibration"], 0 if head is None else head.linear.out_features)
        if not (isinstance(rest["about"], dict) and isinstance(rest["seed"], int)):
            raise TypeError("about must be a table and seed a number")
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError, MemoryError) as error:
        if isinstance(error, ConfigError):
            raise BundleError(f"{folder / 'config.json'}: {error} (register your own aggregators first)") from error
        raise BundleError(f"{folder / 'config.json'} is damaged ({error!r}); train the model again") from error
    tensors = _tensors(folder / "model.safetensors", files["model.safetensors"])
    _fill(encoder, tensors, "encoder.", folder)
    if head is not None:
        _fill(head, tensors, "head.", folder)
    if links is not None:
        _fill(links, tensors, "links.", folder)
        links.eval()
    features, limits = _features(folder, files), _limits(folder, config["limits"], tensors)
    if tensors:
        raise BundleError(f"{folder / 'model.safetensors'} holds a tensor {min(tensors)!r} the model does not have")
    encoder.eval()
    return Model(
        encoder=encoder,
        head=head,
        links=links,
        sampling=sampling,
        features=features,
        structure=structure,
        limits=limits,
        calibration=calibration,
        class_names=None if names is None else tuple(names),
        folder=folder.absolute(),
        **rest,
    )


def _tuple(value: Any) -> Any:
    """JSON has no tuples, and settings no lists."""
    return tuple(value) if isinstance(value, list) else value


def _calibration(given: dict[str, Any], count: int) -> Calibration:
    """ValueError if it is none for `count` classes."""
    temperature, thresholds = given["temperature"], given["thresholds"]
    numbers = [temperature, *(thresholds or [])]
    if not all(isinstance(x, int | float) and math.isfinite(x) for x in numbers) or temperature <= 0:
        raise ValueError("calibration must be finite numbers, and its temperature above 0")
    if thresholds is not None and len(thresholds) != count:
        raise ValueError(f"there are {len(thresholds)} thresholds for {count} labels")
    return Calibration(temperature, None if thresholds is None else torch.tensor(thresholds, dtype=torch.float32))


def read_config(folder: Path) -> dict[str, Any]:
    """`config.json` of a bundle, refused if it has another format or was damaged."""
    path = folder / "config.json"
    if not folder.exists():
        raise BundleError(f"{folder} does not exist")
    try:
        text = read_regular(path, BundleError, JSON_BYTES)
        config: dict[str, Any] = parse_json(text)
        version = int(config["format"])
        if version == FORMAT and not (isinstance(config.get(CHECKSUM), str) and isinstance(config.get("files"), dict)):
            raise ValueError("checksums are missing")
    except FileNotFoundError:
        raise BundleError(f"{folder} is not a model bundle: config.json is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"{path} is damaged ({error!r}); {_ADVICE}") from error
    if version != FORMAT:
        raise BundleError(
            f"{folder} was written by graphsage {config.get('graphsage', '?')} in bundle format {version}, and this "
            f"version reads format {FORMAT}; {'upgrade graphsage' if version > FORMAT else 'train the model again'}"
        )
    return verified(text, str(path), BundleError, _ADVICE)


def _read_files(folder: Path, sums: dict[str, str]) -> dict[str, bytes]:
    """The files that `config.json` names, if they are those that were written with it."""
    contents = {}
    for name, expected in sums.items():
        if name not in _FILES:
            raise BundleError(f"{folder / 'config.json'} names the file {name!r}, which no bundle has; {_ADVICE}")
        try:
            contents[name] = read_regular(folder / name, BundleError)
        except FileNotFoundError:
            raise BundleError(f"{folder} lacks {name}; the bundle is not whole, {_ADVICE}") from None
        if hashlib.sha256(contents[name]).hexdigest() != expected:
            raise BundleError(f"{folder / name} is not the file config.json was written with; {_ADVICE}")
    return contents


def _tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    try:
        return dict(tensors_from_bytes(content))
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{path} is damaged ({error}); {_ADVICE}") from error


def _fill(module: nn.Module, tensors: dict[str, Tensor], prefix: str, folder: Path) -> None:
    for name, value in module.state_dict().items():
        tensor = tensors.pop(prefix + name, None)
        if tensor is None:
            raise BundleError(f"{folder / 'model.safetensors'} lacks the tensor {prefix + name!r}; train it again")
        if tensor.shape != value.shape:
            shapes = f"must be {tuple(value.shape)}; got {tuple(tensor.shape)}"
            raise BundleError(f"{folder / 'model.safetensors'}: {prefix + name!r} {shapes}")
        value.copy_(tensor)


def _features(folder: Path, files: dict[str, bytes]) -> FittedFeatures | None:
    if "features.json" not in files:
        return None
    try:
        settings = parse_json(files["features.json"])
        arrays = arrays_from_bytes(files["features.safetensors"])
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise BundleError(f"the features of {folder} are damaged ({error}); {_ADVICE}") from error
    return FittedFeatures.from_state(settings, arrays)


def _limits(folder: Path, about: dict[str, float] | None, tensors: dict[str, Tensor]) -> FeatureLimits | None:
    largest = tensors.pop("limits.largest", None)
    if about is None or largest is None:
        return None
    if largest.dim() != 1 or not bool(torch.isfinite(largest).all()):
        raise BundleError(f"{folder / 'model.safetensors'}: the limits of features are damaged; {_ADVICE}")
    return FeatureLimits(largest, about["multiple"])
