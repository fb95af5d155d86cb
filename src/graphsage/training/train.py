"""Trains a model from data and settings: extract the training graph, cap it, fit the scaler, run the loop."""

import dataclasses
import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from graphsage.datasets.dataset import LINK_SPLIT, Dataset
from graphsage.errors import ConfigError, DataError, DataWarning, setting
from graphsage.execution.ranks import SINGLE_PROCESS, Ranks
from graphsage.features.known_labels import label_width
from graphsage.features.limits import FeatureLimits, largest_of
from graphsage.features.scaler import fit_scaler
from graphsage.features.structure import PROJECTIONS, Structure
from graphsage.graph.build import check_graph
from graphsage.graph.cap import cap_summary, without_self_loops
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import LinkSplit, split_links
from graphsage.graph.paging import exceeds_memory, read_ahead
from graphsage.graph.split import Split, training_graph, without_test_nodes
from graphsage.inference.bundle import save_bundle
from graphsage.inference.feature_placement import place
from graphsage.inference.fingerprint import checksum
from graphsage.inference.model import (
    KEEP_BYTES,
    OWN_SPLIT,
    Answers,
    Model,
    graph_bytes,
    input_tables,
    neighbor_lists,
    score_of,
    with_known_classes,
)
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead, RegressionHead
from graphsage.model.links import LinkHead
from graphsage.recipes import recipe as recipe_settings
from graphsage.training.config import Config
from graphsage.training.loop import run_loop
from graphsage.training.objectives import make_objective
from graphsage.training.objectives.base import Objective, TrainingData
from graphsage.training.objectives.contrastive import projection_head
from graphsage.training.progress import Event

S = TypeVar("S", bound=Split | str | None)
FEWEST_TO_CHOOSE_BY = 10  # labeled validation nodes
VALIDATION_SOURCES = 1000  # of links; more take longer than they choose better


def train(
    data: Graph | Dataset,
    split: Split | str | None = None,
    config: Config | None = None,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    on_begin: Callable[[], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    about: dict[str, Any] | None = None,
    ranks: Ranks = SINGLE_PROCESS,
    keep_graph: bool | None = None,
    recipe: str | None = None,
    **settings: Any,
) -> Model:
    """Train on the training part of `split` and return the model; with `out`, also write checkpoints, log and bundle.

    The run in `out` keeps its graph, its split and the capped neighbor lists, so that a loaded model needs no other
    data. Above 2 GiB it keeps the path of the data and a fingerprint instead; `keep_graph` decides otherwise.

    `split` is a Split, the name of one of the data set's splits, or None for its default, which is 70/10/20 at random
    for a Graph; `model.run_split()` returns it. Settings can replace a Config: `train(graph, split, dim=64)`. They
    override those of a `recipe` (docs/recipes.md). Several
    processes train one model if each passes its `ranks` (`graphsage.cluster.ranks.join`). Each computes its part of
    every batch, and rank 0 writes to `out` and calls `on_event`. `on_begin` is called after all checks, before the
    first step and the first file. `on_note` gets a sentence about what the degree cap removes, and one if there are too
    few validation nodes to choose the best epoch by, also before the first
    step. Without it, a warning says so if nodes lose all neighbors.
    """
    if config is not None and settings:
        raise ConfigError(f"give settings in config or one by one, not both; got config and {', '.join(settings)}")
    if recipe is not None:
        if config is not None:
            raise ConfigError("give a recipe or a config, not both; single settings override a recipe")
        settings = recipe_settings(recipe) | settings
    config = config or Config.from_dict(settings)
    if config.task == "links":
        if config.pairs is not None:  # later commands may run elsewhere
            config = dataclasses.replace(config, pairs=str(Path(config.pairs).absolute()))
        if ranks.count > 1:
            raise ConfigError(f"{setting('task', 'links')} trains in one process; leave out the workers")
        data, split = with_node_split(config.resolved(), _dataset(data), split)
    config = settled(config, data, split)
    for sentence in config.without_effect() if ranks.rank == 0 else ():
        warnings.warn(sentence, DataWarning, stacklevel=2)
    run = set_up(data, split, config, choose_device(device), about or {}, ranks)
    model, folder = run.model, None if out is None or ranks.rank else Path(out)
    validate, few = _link_validator(config, run), None
    if run.links is None:
        validate = _validator(config, model, run.graph, run.split)
        config, few = _chooses(config, run.graph, run.split)
    kept: list[str] = []

    def begin() -> None:
        if on_begin is not None:
            on_begin()
        if run.links is not None and on_note is not None:
            on_note(f"links   {run.links.summary()}")
        if few is not None and on_note is not None:
            on_note(f"keep    {few}")
        capped = _capped_lists(run, keep_graph, on_note)
        if folder is not None:
            from graphsage.inference.run_data import keep_data  # loads pyarrow: 40 MB

            name = _split_name(data, split, model.about)
            kept.append(keep_data(folder, model, data, run.given, run.split, name, capped, keep_graph))

    identity = _identity(config, model, run.data)
    _same_everywhere(identity, ranks)
    state = run_loop(
        config,
        run.module,
        run.objective,
        validate=validate,
        folder=folder,
        identity=identity,
        resume=resume and out is not None,
        on_begin=None if ranks.rank else begin,
        on_event=None if ranks.rank else on_event,
        ranks=ranks,
    )
    if config.calibrates and model.head is not None and run.graph.labels is not None:
        nodes = run.graph.labeled(run.split.nodes("val").to(run.graph.labels.device))
        if len(nodes):
            seen, known = without_test_nodes(run.graph, run.split), _known_nodes(config, run.graph, run.split)
            model.calibrate(seen, nodes, config.selection().name, known=known)
    model.about["training"] = {
        "steps": state.step,
        "seconds": round(state.seconds, 3),
        "metric": None if validate is None else config.metric,
        "best_val_score": state.best_score,
        "val_score": state.best_score if config.keeps_best else state.last_score,
        "kept_epoch": state.best_epoch if config.keeps_best else -(-state.step // run.objective.epochs.steps),
    }
    model._drawn, model._trained = None, (run.given, run.split)
    if folder is not None:
        save_bundle(model, folder, kept[0])
        model.folder = folder.absolute()
    return model


def settled(config: Config, data: Graph | Dataset, split: Split | str | None) -> Config:
    """The settings, with those that are left open chosen for the data."""
    if config.task == "links":  # its split is one of links
        return config.resolved()
    dataset, chosen = _chosen_split(data, split)
    featureless = dataset.graph.features is None and dataset.plan is None
    return config.resolved(featureless=featureless, num_train=len(chosen.nodes("train")))


@dataclass(frozen=True)
class Run:
    """The model, data and objective of a run, on its device, before the first step."""

    model: Model
    module: nn.ModuleDict
    objective: Objective
    data: TrainingData
    graph: Graph
    given: Graph
    """`graph` as it was before it moved to the device."""
    split: Split
    links: LinkSplit | None = None
    """On the CPU."""


def set_up(
    data: Graph | Dataset,
    split: Split | str | None,
    config: Config,
    device: torch.device,
    about: dict[str, Any],
    ranks: Ranks = SINGLE_PROCESS,
) -> Run:
    """Extract the training graph, cap it, fit the scaler, create the model and move everything to `device`."""
    graph, chosen, fitted = _prepare(data, split)
    check_graph(graph)
    config.sampling().sizes(len(graph.by_relation))  # refuses settings that do not fit the relations
    links = None
    if config.task == "links":
        if graph.weighted:
            raise ConfigError(
                f"{setting('task', 'links')} does not read edge weights; leave {setting('edge_weight')} out"
            )
        links = split_links(graph, config.link_split or "edges", chosen, config.seed, _pairs(config, graph))
    seen = training_graph(graph, chosen) if links is None else links.train.messages
    structure = _structure(config, graph)
    tables = input_tables(seen, structure)
    nodes = chosen.nodes("train")
    model = _new_model(config, seen, tables, nodes, structure, ranks)
    model.label_inputs = bool(config.label_inputs)
    model.features = fitted
    model.about = {"config": config.as_dict(), **(data.about if isinstance(data, Dataset) else {}), **about}
    if config.pairs is not None:
        model.about["pairs"] = checksum(Path(config.pairs))
    model.to(device)
    learned, _ = with_known_classes(model, graph)
    here = place(learned, device, config.feature_type)  # one copy of the features serves training and validation
    if here.features is not None and exceeds_memory(here.features):
        read_ahead(here.features, False)
    labels = here.labels
    if model.head is not None and model.multilabel and labels is not None:
        labels = labels[:, : model.head.linear.out_features]
    seen = seen.replace(features=None, labels=None).to(device).replace(features=here.features, labels=labels)
    capped = neighbor_lists(seen, model.sampling, model.seed)
    tables = input_tables(seen, structure)
    nodes, known = nodes.to(device), None
    if config.label_inputs:
        known = model.label_table(seen, seen.labeled(nodes))
        tables = [*tables, known]
    training_data = TrainingData(seen, capped, tables, nodes, ranks.rank, ranks.count, known)
    projection = _projection(config, device)
    parts = {"encoder": model.encoder, "head": model.head, "projection": projection, "links": model.links}
    module = nn.ModuleDict({name: part for name, part in parts.items() if part is not None})
    _begin_alike(module, ranks)
    asked = None if links is None or model.links is None else (model.links, links)
    objective = make_objective(config, model.encoder, model.head, training_data, projection, asked)
    return Run(model, module, objective, training_data, here, graph, chosen, links)


def _pairs(config: Config, graph: Graph) -> Tensor | None:
    """The table of links, as rows of the graph."""
    if config.pairs is None:
        return None
    from graphsage.inference.links import read_pairs

    return read_pairs(config.pairs, graph)


def with_node_split(config: Config, data: Dataset, split: S) -> tuple[Dataset, S | str]:
    """The data and the split of its nodes for links: all are known, unless the links of new nodes are held out."""
    if config.link_split == "nodes":
        return data, split
    if split not in (None, LINK_SPLIT):
        how = setting("link_split", config.link_split or "edges")
        raise ConfigError(
            f"{how} holds out links and no nodes, so {setting('split')} has no effect; leave it out, or use "
            f"{setting('link_split', 'nodes')}"
        )
    return data.with_all_nodes(), LINK_SPLIT


def _structure(config: Config, graph: Graph) -> Structure:
    """The features by edges that the model reads: for a graph without other features, at least the degree."""
    lacking = graph.features is None and not config.identity_dim
    if lacking and config.task == "links":
        raise DataError(
            "the nodes have no features, and features from edges would tell a model the links it is asked for; give "
            f"{setting('identity_dim', 64)} to learn a vector for each node"
        )
    usual = PROJECTIONS if lacking and config.form is None and not config.label_inputs else 0
    projections = usual if config.projections is None else config.projections
    return Structure(config.degree_features or lacking, projections)


def _capped_lists(run: Run, keep: bool | None, on_note: Callable[[str], None] | None) -> Graph | None:
    """The neighbor lists that validation and later commands read, or None if they are too large to keep. What the cap
    removes is reported, of the training graph in that case."""
    model, here, data = run.model, run.graph, run.data
    limit, cap = model.sampling.max_degree, model.sampling.cap
    whole, capped = data.graph, data.capped
    lists = here.replace(features=None, labels=None, class_names=None, time=None, graph_number=None, edge_time=None)
    fits = bool(keep) or graph_bytes(lists) <= KEEP_BYTES
    if fits:
        whole, capped = lists, neighbor_lists(lists, model.sampling, model.seed)
        model._drawn = here, capped
    if limit is not None:
        whole = whole if model.sampling.self_loops else without_self_loops(whole)
        _report_cap(whole, capped, limit, cap, on_note)
    return capped if fits else None


def _report_cap(whole: Graph, capped: Graph, max_degree: int, cap: str, on_note: Callable[[str], None] | None) -> None:
    sentence = cap_summary(whole, capped, max_degree, cap)
    if on_note is not None:
        on_note(f"cap     {sentence}")
    elif any(
        bool(((a.degrees > 0) & (b.degrees == 0)).any())
        for a, b in zip(whole.by_relation, capped.by_relation, strict=True)
    ):
        warnings.warn(f"the degree cap keeps {sentence}", stacklevel=5)


def _split_name(data: Graph | Dataset, split: Split | str | None, about: dict[str, Any]) -> str:
    if isinstance(split, str) or "split" in about:
        return split if isinstance(split, str) else str(about["split"])
    dataset = _dataset(data)
    if split is None:
        return dataset.default_split
    return next((name for name, known in dataset.splits.items() if known is split), OWN_SPLIT)


def _dataset(data: Graph | Dataset) -> Dataset:
    return data if isinstance(data, Dataset) else Dataset("graph", data, {}, "random")


def choose_device(name: str) -> torch.device:
    """'auto' takes a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"{setting('device')} must be auto, cpu or cuda; got {name!r}") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"{setting('device')} must be auto, cpu or cuda; got {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f"{setting('device', 'cuda')} was asked for, but torch finds no GPU; use {setting('device', 'cpu')}"
        )
    return device


def _prepare(data: Graph | Dataset, split: Split | str | None) -> tuple[Graph, Split, Any]:
    dataset, chosen = _chosen_split(data, split)
    graph, fitted = dataset.with_features(chosen)
    return graph, chosen, fitted


def _chosen_split(data: Graph | Dataset, split: Split | str | None) -> tuple[Dataset, Split]:
    if not isinstance(data, Graph | Dataset):
        raise ConfigError(
            f"data must be a Graph or a Dataset; got {type(data).__name__}; make one with Graph.from_edges(edges, "
            "features=x) or open_tables"
        )
    if not isinstance(split, Split | str | None):
        raise ConfigError(
            f"split must be a Split or a name; got {type(split).__name__}; make one with Split.masks(train)"
        )
    dataset = _dataset(data)
    return dataset, split if isinstance(split, Split) else dataset.split(split)


def _new_model(
    config: Config, seen: Graph, tables: list[Tensor], nodes: Tensor, structure: Structure, ranks: Ranks
) -> Model:
    in_dim = sum(table.shape[1] for table in tables)
    if config.label_inputs:
        in_dim += label_width(_vocabulary(seen, nodes)[1])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        settings = dataclasses.replace(config.encoder(), relations=tuple(seen.relations), weighted=seen.weighted)
        encoder = Encoder(settings, in_dim, seen.num_nodes if config.identity_dim else None)
        head, names = None, seen.class_names
        links = None
        if config.task == "links":
            links = LinkHead(
                config.dim,
                config.decoder or "dot",
                popularity=config.popularity,
                in_dim=in_dim if config.source_encoder == "features" else None,
                normalize=config.encoder().normalize != "never",
                dropout=config.dropout or 0.0,
            )
        elif config.task != "unsupervised":
            check_task(seen, config.task)
            names, width = _vocabulary(seen, nodes)
            kind = RegressionHead if config.regression else ClassHead
            head = kind(config.dim, width, scale=config.head_scale, dropout=config.dropout or 0.0)
            if isinstance(head, RegressionHead) and seen.labels is not None:
                head.fit(seen.labels[nodes])
    limits = None
    if tables:
        # Rank 0 fits them for all ranks: the same bits everywhere.
        fitted = load(ranks.first(lambda: save(_statistics(tables, nodes, seen.num_features, config.standardize))))
        limits = FeatureLimits(fitted["largest"]) if seen.num_features else None
        if config.standardize:  # known labels stay 0 and 1
            encoder.shift[: len(fitted["shift"])] = fitted["shift"]
            encoder.scale[: len(fitted["scale"])] = fitted["scale"]
    return Model(
        encoder=encoder,
        head=head,
        links=links,
        sampling=config.sampling(),
        inference=config.inference,
        structure=structure,
        keep_features=config.keep_features,
        multilabel=seen.multilabel,
        class_names=names,
        limits=limits,
        seed=config.seed,
    )


def _projection(config: Config, device: torch.device) -> nn.Module | None:
    """The projection head of the contrastive objective: trained with the encoder, and dropped after training."""
    if config.objective != "contrastive":
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return projection_head(config.dim).to(device)


def _statistics(tables: list[Tensor], nodes: Tensor, num_features: int, standardize: bool) -> dict[str, Tensor]:
    """The largest features of the training nodes and, on request, the scaler."""
    largest = {"largest": largest_of(tables[:1] if num_features else [], nodes)}
    return largest | _fitted_scaler(tables, nodes) if standardize else largest


def _fitted_scaler(tables: list[Tensor], nodes: Tensor) -> dict[str, Tensor]:
    scaler = fit_scaler(tables, nodes)
    odd = torch.nonzero(~(torch.isfinite(scaler.mean) & torch.isfinite(scaler.scale)))
    if len(odd):
        raise DataError(f"feature column {int(odd[0, 0])} holds NaN or infinity among training nodes; fill it first")
    return {"shift": scaler.mean, "scale": 1.0 / scaler.scale}


def _begin_alike(module: nn.Module, ranks: Ranks) -> None:
    """Copy rank 0's weights to every rank: different machines may round their initial draws differently."""
    if ranks.count > 1:
        module.load_state_dict(load(ranks.first(lambda: save({n: v.cpu() for n, v in module.state_dict().items()}))))


def _same_everywhere(identity: str, ranks: Ranks) -> None:
    if ranks.any(ranks.first(identity.encode).decode() != identity):
        raise DataError(
            "the ranks read different data or have different settings; give every machine the same graph "
            "folder and the same command line"
        )


def check_task(graph: Graph, task: str) -> None:
    """Refuse labels of another kind than `task` learns."""
    if graph.labels is not None and task != "unsupervised" and graph.regression != (task == "regression"):
        found = "numbers to predict" if graph.regression else "classes"
        raise DataError(
            f"the labels are {found}, which {setting('task', task)} does not learn; use "
            + (setting("task", "regression") if graph.regression else f"{setting('task', 'supervised')}, or targets")
        )


def check_classes(graph: Graph, nodes: Tensor, where: str = "the graph") -> None:
    """Refuse labels of the training `nodes` from which nothing can be learned. A message says that `where` has them."""
    assert graph.labels is not None
    if graph.regression:
        for place, count in enumerate(graph.class_counts(nodes)):
            if not count:
                name = (graph.class_names or range(graph.num_classes))[place]
                raise DataError(f"{where} has no known value of the target {name!r} among the training nodes")
        return
    if graph.multilabel and len(graph.labeled(nodes)):
        return
    counts = graph.class_counts(nodes)
    seen = [number for number, count in enumerate(counts) if count]
    if len(seen) < 2:
        found = f"one class, {(graph.class_names or range(len(counts)))[seen[0]]!r}," if seen else "no class"
        raise DataError(f"{where} has {found} among the training nodes; two are needed")


def _vocabulary(graph: Graph, nodes: Tensor) -> tuple[tuple[str, ...] | None, int]:
    """The classes that labeled training nodes have: their names, and their number. Held-out labels are never read."""
    if graph.labels is None:
        raise DataError(f"this task needs labels and the graph has none; use {setting('task', 'unsupervised')}")
    check_classes(graph, nodes)
    labels, names = graph.labels[graph.labeled(nodes)], graph.class_names
    if graph.regression:
        return names, labels.shape[1]
    if names is None:
        return None, labels.shape[1] if graph.multilabel else int(labels.max()) + 1 if len(labels) else 0
    used = labels.any(dim=0) if graph.multilabel else torch.bincount(labels, minlength=len(names)) > 0
    known = tuple(name for name, has in zip(names, used.tolist(), strict=True) if has) or names
    return known, len(known)


def _known_nodes(config: Config, graph: Graph, split: Split) -> Tensor | None:
    """The nodes whose labels neighbors read in validation, if the model has label inputs."""
    return graph.labeled(split.nodes("train").to(graph.indptr.device)) if config.label_inputs else None


def _validator(config: Config, model: Model, graph: Graph, split: Split) -> Callable[[], float] | None:
    """The chosen score of the validation nodes in the graph without test nodes, by the model's inference mode."""
    if model.head is None or graph.labels is None:
        return None
    nodes = graph.labeled(split.nodes("val").to(graph.labels.device))
    if not len(nodes):
        return None
    seen, truth = without_test_nodes(graph, split), graph.labels[nodes]
    known = _known_nodes(config, graph, split)

    def validate() -> float:
        return score_of(config.selection(), Answers(truth, *model.outputs(model.embed(seen, nodes, known=known))))

    return validate


def _link_validator(config: Config, run: Run) -> Callable[[], float] | None:
    """The chosen score of the validation links, among all candidates."""
    if run.links is None:
        return None
    from graphsage.evaluation.link_scores import Questions  # they load scipy, for this task alone
    from graphsage.inference.links import score_links

    part = run.links.val
    asked = Questions.of(part, VALIDATION_SOURCES, config.seed)

    def validate() -> float:
        return score_links(run.model, run.given, part, asked).as_dict()[config.selection().name]

    return validate


def _chooses(config: Config, graph: Graph, split: Split) -> tuple[Config, str | None]:
    """The settings; with too few validation nodes to choose the best epoch by, they keep the last weights, and a
    sentence says so. To ask for the best ones is then an error."""
    if not (config.keeps_best or config.patience):
        return config, None
    nodes = split.nodes("val")
    count = 0 if graph.labels is None else len(graph.labeled(nodes.to(graph.labels.device)))
    asked = "patience" if config.patience else "keep_weights" if config.keep_weights == "best" else None
    if asked is None and count < FEWEST_TO_CHOOSE_BY:
        found = f"{count} labeled validation nodes are too few" if count else "there is no labeled validation node"
        sentence = f"{found} to choose the best epoch by; the last weights are kept"
        return dataclasses.replace(config, keep_weights="last"), sentence
    if asked is not None and not count:
        raise ConfigError(
            f"{setting(asked)} needs a validation score, and the split has no labeled validation node; leave it out, "
            "or use another split"
        )
    return config, None


def _identity(config: Config, model: Model, data: TrainingData) -> str:
    """The run's settings (without its length, unless the learning rate needs it) and a digest of its data; JSON."""
    free = {} if config.rate_needs_length else {"epochs": None, "steps": None}
    settings = {**dataclasses.asdict(config), **free}
    if config.pairs is not None:
        settings["pairs"] = model.about["pairs"]
    digest = hashlib.sha256()
    scaler = (model.encoder.shift, model.encoder.scale)
    some = data.nodes[:: max(1, len(data.nodes) // 1024)]  # a sample, because features may be larger than memory
    rows = [table[some.to(table.device)].float() for table in data.tables]
    labels = [] if data.graph.labels is None else [data.graph.labels[data.nodes]]
    for tensor in (data.capped.indptr, data.capped.indices, data.nodes, *scaler, *rows, *labels):
        digest.update(tensor.cpu().numpy().tobytes())
    return json.dumps({"settings": settings, "data": digest.hexdigest()}, sort_keys=True)
