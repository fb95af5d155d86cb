"""The model in service, which a reload replaces as a whole."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsage.errors import BundleError, DamageError
from graphsage.inference.export import class_names
from graphsage.inference.model import Model, check_finite, load
from graphsage.live.adjacency import Cap
from graphsage.live.embed import LiveEncoder
from graphsage.live.node_features import NodeFeatures, fingerprint
from graphsage.live.overlay_view import Target
from graphsage.live.store import LiveGraph
from graphsage.model.links import LinkHead
from graphsage.regular_files import read_regular

_TRIED = 16  # nodes that a model is tried on before it is served


@dataclass(frozen=True, eq=False)
class ServedModel:
    """`version` is a digest of the bundle: equal versions give equal vectors."""

    version: str
    encoder: LiveEncoder
    rows: NodeFeatures
    cap: Cap
    classes: tuple[str, ...]
    targets: tuple[str, ...]
    """Names of the numbers that a regression predicts."""
    multilabel: bool
    features: str
    about: dict[str, Any]
    links: LinkHead | None = None
    """What scores links, after training for them."""
    of_table: bool = False
    """Whether the links that it learned are those of a table, which the service does not have."""

    @property
    def dim(self) -> int:
        return self.encoder.dim

    @property
    def predicts(self) -> bool:
        return bool(self.classes or self.targets)

    def class_of(self, outputs: Tensor) -> int | None:
        """The number of the most probable class."""
        return int(outputs.argmax()) if self.classes else None

    def prediction(self, p: Tensor) -> dict[str, Any]:
        """Probabilities (C,) as an answer, in descending order; or the numbers of a regression (T,)."""
        if self.targets:
            return {"values": dict(zip(self.targets, p.tolist(), strict=True))}
        decided = self.encoder.calibration.decide(p[None], self.multilabel)[0]
        order = torch.argsort(p, descending=True, stable=True).tolist()
        named = {self.classes[c]: float(p[c]) for c in order}
        if self.multilabel:
            return {"labels": [self.classes[c] for c in order if decided[c]], "probabilities": named}
        return {"class": self.classes[order[0]], "probability": float(p[order[0]]), "probabilities": named}


def recommends(head: LinkHead | None) -> bool:
    """Whether the nearest vectors are the likeliest targets, so that the search index finds them."""
    return (
        head is not None
        and head.normalize
        and head.decoder in ("dot", "bilinear")
        and head.popularity is None
        and head.tower is None
    )


def load_model(run: Path, inference: str | None) -> ServedModel:
    """Load a bundle and refuse one that cannot embed."""
    model = load(run)
    config = read_regular(run / "config.json", BundleError)
    version = sha256(config + (inference or "").encode()).hexdigest()[:12]
    return ready(model, version, inference)


def try_out(model: ServedModel, live: LiveGraph, run: Path) -> None:
    """Embed and classify some nodes of the live graph and an average new one; refuse a model that fails at it."""
    encoder = model.encoder
    with live.reading() as (overlay, _):
        width = overlay.base.graph.num_features
        if width != model.rows.width:
            raise BundleError(
                f"the model in {run} reads {model.rows.width} features per node, and the live graph has {width}; "
                "create a live graph for it: graphsage live create RUN FOLDER"
            )
        theirs = overlay.base.graph.class_names
        if encoder.label_classes is not None and theirs is not None and theirs[: len(model.classes)] != model.classes:
            raise BundleError(
                f"the model in {run} reads the labels of neighbors, and its classes are not those of the live graph; "
                "create a live graph for it: graphsage live create RUN FOLDER"
            )
        rows = np.unique(np.linspace(0, overlay.num_rows - 1, _TRIED).astype(np.int64)).tolist()
        average = encoder.encoder.shift[:width].numpy().copy() if width else None
        targets = [Target(overlay, row) for row in rows if row not in overlay.gone]
        average_node = Target(*overlay.visitor(0, average, []))
        try:
            compute = encoder.read([*targets, average_node])
        except DamageError:  # the rest of the graph is served all the same
            targets, compute = [], encoder.read([average_node])
    try:
        z = compute()
        p = encoder.outputs(z)
        results = z if p is None else torch.cat([z, p], dim=1)
        check_finite(results[-1:])
        finite = torch.isfinite(results[:-1]).all(dim=1)
        if targets and not bool(finite.any()):  # some may have huge stored features; requests for them get an error
            check_finite(results)
    except (ValueError, RuntimeError, IndexError, TypeError, KeyError) as error:
        raise BundleError(
            f"the model in {run} cannot embed nodes of the live graph ({error}); train it again"
        ) from error


def ready(model: Model, version: str, inference: str | None = None) -> ServedModel:
    encoder = LiveEncoder.of(model, inference)
    for name, tensor in model.encoder.state_dict().items():
        if not bool(torch.isfinite(tensor).all()):
            raise BundleError(f"the model's {name!r} holds NaN or infinity; train it again")
    names = () if model.head is None else class_names(model, model.head.linear.out_features)
    about = {
        "data": model.about.get("data"),
        "aggregator": model.encoder.config.aggregator,
        "layers": model.encoder.config.num_layers,
        "dim": model.dim,
        "inference": encoder.inference,
        "sample_sizes": list(model.sampling.sample_sizes),
        "max_degree": model.sampling.max_degree,
    }
    of_table = model.about.get("pairs") is not None
    about["recommends"] = recommends(model.links) and not of_table
    about["data"] = str(about["data"]).rpartition("/")[2] if about["data"] is not None else None
    return ServedModel(
        version,
        encoder,
        NodeFeatures(model),
        Cap.of(model.sampling, model.seed),
        () if model.regression else names,
        names if model.regression else (),
        model.multilabel,
        fingerprint(model),
        about,
        model.links,
        of_table,
    )
