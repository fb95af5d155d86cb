"""A model on disk: `config.json` + `model.safetensors` (+ `features.json`, `features.safetensors`).

Nothing in it executes."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save as arrays_as_bytes
from safetensors.torch import load_file
from safetensors.torch import save as tensors_as_bytes
from torch import Tensor, nn

from graphsage.atomic import atomic_file
from graphsage.errors import BundleError, ConfigError
from graphsage.features.pipeline import FittedFeatures
from graphsage.inference.fingerprint import checksum
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.model.heads import ClassHead
from graphsage.sampling.minibatch import SamplingConfig
from graphsage.version import __version__

if TYPE_CHECKING:
    from graphsage.inference.model import Model

FORMAT = 3  # 3: the degree cap is keyed by node ids
_PLAIN = ("inference", "degree_features", "multilabel", "seed", "about")  # attributes of a Model as JSON values


def save_bundle(model: "Model", folder: Path, data: str | None = None) -> None:
    """Write each file atomically, and `config.json` with all checksums last; `data` is that of the run's kept data."""
    encoder, head = model.encoder, model.head
    if data is None and model.folder == folder.absolute():  # the run keeps its graph
        data = read_config(folder).get("data")
    tensors = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    if head is not None:
        tensors |= {f"head.{name}": value for name, value in head.state_dict().items()}
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
        else {"num_classes": head.linear.out_features, "scale": head.log_scale is not None},
        "sampling": dataclasses.asdict(model.sampling),
        **{name: getattr(model, name) for name in (*_PLAIN, "class_names")},
        "data": data,
        "sha256": {name: checksum(folder / name) for name in files},
    }
    with atomic_file(folder / "config.json") as temporary:
        temporary.write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load_bundle(folder: Path) -> "Model":
    from graphsage.inference.model import Model

    config = read_config(folder)
    for name, expected in config["sha256"].items():
        if not (folder / name).exists():
            raise BundleError(f"{folder} lacks {name}; the bundle is not whole, copy or train it again")
        if checksum(folder / name) != expected:
            raise BundleError(f"{folder / name} is not the file config.json was written with; copy or train it again")
    try:
        encoder_config = EncoderConfig(**config["encoder"])
        sampling = SamplingConfig(**{**config["sampling"], "sample_sizes": tuple(config["sampling"]["sample_sizes"])})
        encoder = Encoder(encoder_config, config["in_dim"], config["num_nodes"])
        head = None
        if config["head"] is not None:
            head = ClassHead(encoder_config.dim, config["head"]["num_classes"], scale=config["head"]["scale"])
        names = config["class_names"]
        rest = {name: config[name] for name in _PLAIN}
        if not (isinstance(rest["about"], dict) and isinstance(rest["seed"], int)):
            raise TypeError("about must be a table and seed a number")
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError, MemoryError) as error:
        if isinstance(error, ConfigError):
            raise BundleError(f"{folder / 'config.json'}: {error} (register your own aggregators first)") from error
        raise BundleError(f"{folder / 'config.json'} is damaged ({error!r}); train the model again") from error
    tensors = _tensors(folder / "model.safetensors")
    _fill(encoder, tensors, "encoder.", folder)
    if head is not None:
        _fill(head, tensors, "head.", folder)
    if tensors:
        raise BundleError(f"{folder / 'model.safetensors'} holds a tensor {min(tensors)!r} the model does not have")
    encoder.eval()
    return Model(
        encoder=encoder,
        head=head,
        sampling=sampling,
        features=_features(folder, config),
        class_names=None if names is None else tuple(names),
        folder=folder.absolute(),
        **rest,
    )


def read_config(folder: Path) -> dict[str, Any]:
    """`config.json` of a bundle, refused if it has another format."""
    path = folder / "config.json"
    if not folder.exists():
        raise BundleError(f"{folder} does not exist")
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = int(config["format"])
        config["sha256"].items()
    except FileNotFoundError:
        raise BundleError(f"{folder} is not a model bundle: config.json is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise BundleError(f"{path} is damaged ({error!r}); train the model again") from error
    if version != FORMAT:
        raise BundleError(
            f"{folder} was written by graphsage {config.get('graphsage', '?')} in bundle format {version}, and this "
            f"version reads format {FORMAT}; {'upgrade graphsage' if version > FORMAT else 'train the model again'}"
        )
    return config


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise BundleError(f"{path} is damaged ({error}); copy or train the model again") from error


def _fill(module: nn.Module, tensors: dict[str, Tensor], prefix: str, folder: Path) -> None:
    for name, value in module.state_dict().items():
        tensor = tensors.pop(prefix + name, None)
        if tensor is None:
            raise BundleError(f"{folder / 'model.safetensors'} lacks the tensor {prefix + name!r}; train it again")
        if tensor.shape != value.shape:
            shapes = f"must be {tuple(value.shape)}; got {tuple(tensor.shape)}"
            raise BundleError(f"{folder / 'model.safetensors'}: {prefix + name!r} {shapes}")
        value.copy_(tensor)


def _features(folder: Path, config: dict[str, Any]) -> FittedFeatures | None:
    if "features.json" not in config["sha256"]:
        return None
    try:
        settings = json.loads((folder / "features.json").read_text(encoding="utf-8"))
        arrays = load_arrays(folder / "features.safetensors")
    except (ValueError, OSError, SafetensorError) as error:
        raise BundleError(f"the features of {folder} are damaged ({error}); train the model again") from error
    return FittedFeatures.from_state(settings, arrays)
