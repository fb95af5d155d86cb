"""A trained model: embeddings, predictions and scores for any graph with the same kind of features."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from graphsage.errors import ConfigError, DataError, DataWarning, GraphSageError, setting
from graphsage.evaluation.calibration import Bin, Calibration, calibration_error, fitted, reliability
from graphsage.evaluation.class_report import ClassScores, class_report
from graphsage.evaluation.f1 import F1, f1_scores
from graphsage.evaluation.metrics import Metric
from graphsage.evaluation.probe import Probe
from graphsage.evaluation.regression import RegressionScores, regression_scores
from graphsage.features.known_labels import label_features, label_width
from graphsage.features.limits import FeatureLimits
from graphsage.features.pipeline import FittedFeatures
from graphsage.features.structure import NO_STRUCTURE, Structure
from graphsage.graph.build import check_graph, reads_both
from graphsage.graph.cap import cap_degrees, without_equal_weights
from graphsage.graph.graph import UNKNOWN, Graph, known_labels
from graphsage.graph.split import TRAIN, Split
from graphsage.inference.embed import (
    OnBlock,
    embed_exact,
    embed_sampled,
    kept_features,
    order_matters,
    with_lists_by_key,
)
from graphsage.inference.feature_placement import place
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead, RegressionHead
from graphsage.model.links import LinkHead
from graphsage.sampling.minibatch import SamplingConfig
from graphsage.tables.spec import BOTH

if TYPE_CHECKING:
    from graphsage.evaluation.link_scores import LinkScores
    from graphsage.inference.links import Recommended
    from graphsage.inference.new_rows import Attached
    from graphsage.inference.run_data import RunData

INFERENCE = ("exact", "sampled")
KEEP_BYTES = 2 << 30  # a run refers to a larger graph instead of copying it
OWN_SPLIT = "own"  # the name of a split that the caller made


@dataclass(frozen=True, eq=False)
class Answers:
    """True classes (N,), labels (N, C) or targets (N, T) of nodes, and what was predicted. A probe and a regression
    give no `probabilities`."""

    truth: Tensor
    decided: Tensor
    probabilities: Tensor | None = None


@dataclass(eq=False)
class Model:
    """An encoder, the head on top of it (None after unsupervised training) and how inputs are made for them."""

    encoder: Encoder
    head: ClassHead | None
    sampling: SamplingConfig
    inference: str = "exact"
    structure: Structure = NO_STRUCTURE
    label_inputs: bool = False
    """Whether nodes read the known labels of their neighbors."""
    keep_features: bool = False
    """Whether embeddings are followed by the scaled features."""
    multilabel: bool = False
    class_names: tuple[str, ...] | None = None
    features: FittedFeatures | None = None
    limits: FeatureLimits | None = None
    """Values of features beyond these are refused in new rows; None sets no limits."""
    calibration: Calibration = field(default_factory=Calibration)
    """What validation nodes say about the scores."""
    seed: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    """Where it comes from: the training settings, the data's name and split."""
    folder: Path | None = field(default=None, repr=False)
    """The folder that the model was loaded from or trained into."""

    links: LinkHead | None = None
    """What scores links, after training for them."""

    _last: tuple[Graph, Graph, Graph, bool] | None = field(default=None, repr=False)
    """Cache: the last graph, its copies on the device and capped, and whether its lists are in the order of keys."""
    _read: tuple[Graph, list[Tensor]] | None = field(default=None, repr=False)
    """Cache: the last graph on the device, and its input tables."""
    _own: "RunData | None" = field(default=None, repr=False)
    _trained: tuple[Graph, Split] | None = field(default=None, repr=False)
    """The graph and split of a model that was trained in this process."""
    _drawn: tuple[Graph, Graph] | None = field(default=None, repr=False)
    """A graph and its neighbor lists after the degree cap: they are not drawn again."""

    @property
    def regression(self) -> bool:
        """Whether it predicts numbers."""
        return isinstance(self.head, RegressionHead)

    @property
    def device(self) -> torch.device:
        return self.encoder.shift.device

    @property
    def dim(self) -> int:
        """Width of what `embed` returns."""
        return self.encoder.config.dim + self.keep_features * self.encoder.in_dim

    def to(self, device: str | torch.device) -> "Model":
        self.encoder.to(device)
        for part in (self.head, self.links):
            if part is not None:
                part.to(device)
        return self

    def embed(
        self,
        graph: Graph | None = None,
        nodes: Tensor | Sequence[int] | None = None,
        *,
        new_nodes: Any = None,
        new_edges: Any = None,
        new_vectors: Any = None,
        inference: str | None = None,
        keep_features: bool | None = None,
        known: Tensor | Sequence[int] | None = None,
        as_of: int | str | None = None,
        on_block: Callable[[int, int], None] | None = None,
    ) -> Tensor:
        """z of `nodes` (row numbers; all by default), (len(nodes), dim), on the CPU.

        With `keep_features` (by default as the model was trained), the scaled features follow: (len(nodes), dim + D).

        The graph may be one that did not exist at training time, or `graph.with_nodes(...)`: nothing is retrained.
        Without a graph it is the one that the model was trained on; a run keeps it. `new_nodes` and `new_edges` are
        tables (pandas, polars, Arrow, a dict of columns, a path) of what arrived later: they are attached to the
        graph, and by default only the new nodes are embedded, in the order of their table. `new_vectors` are matrices
        of the new nodes (arrays or `.npy` files), for a model that was trained with such files.
        `known` are the rows of nodes whose labels neighbors may read, for a model with label inputs: by default the
        training nodes, found by id in another graph.
        `as_of` is a time, as an integer or as the tables write it: only edges dated strictly before are read.
        'exact' reads all neighbors; 'sampled' draws them as in training, at a fixed cost a node.
        """
        graph = self._graph(graph)
        if new_nodes is not None or new_edges is not None:
            attached = self.attach(graph, new_nodes, new_edges, new_vectors)
            graph = attached.graph
            nodes = attached.rows if nodes is None and new_nodes is not None else nodes
        graph = self._in_relations(graph)
        if as_of is not None:
            graph = self.as_of(graph, as_of)
        how = inference or self.inference
        rows = None if nodes is None else _rows(nodes, graph)
        check_identity(self.encoder, graph.num_nodes)
        if how not in INFERENCE:
            raise ConfigError(f"{setting('inference')} must be exact or sampled; got {how!r}")
        given = graph
        graph, capped = self._prepared(given, order_matters(self.encoder, how))
        tables = self._tables(graph)
        if self.label_inputs:
            tables = [*tables, self._known_labels(given, graph, known)]
        if how == "exact":
            rows = None if rows is None else rows.to(self.device)
            z = embed_exact(self.encoder, capped, tables, rows, seed=self.seed, on_block=on_block)
        else:
            rows = torch.arange(graph.num_nodes) if rows is None else rows
            z = embed_sampled(
                self.encoder, capped, tables, rows.to(self.device), self.sampling, seed=self.seed, on_block=on_block
            )
        if self.keep_features if keep_features is None else keep_features:
            at = torch.arange(graph.num_nodes, device=self.device) if rows is None else rows.to(self.device)
            z = torch.cat([z, kept_features(self.encoder, tables, at)], dim=1)
        return check_finite(z.cpu(), rows)

    def as_of(self, graph: Graph, time: int | str) -> Graph:
        """`graph` as it was known at `time`, as the training tables write times: only edges dated before. Without such
        tables an integer, or a date, which is its seconds since 1970."""
        from graphsage.graph.split import as_of
        from graphsage.inference.run_data import edge_scale
        from graphsage.tables.columns import TimeScale

        scale = edge_scale(self.about) or TimeScale.of_text(str(time), ())
        return as_of(graph, scale.at(str(time), "as_of"), scale.text)

    def _edge_types(self, direction: str) -> tuple[str, ...]:
        names = self.encoder.config.relations
        return tuple(name.removesuffix(" in") for name in names[::2]) if direction == BOTH else names

    def _in_relations(self, graph: Graph) -> Graph:
        """`graph` with the relations that the model aggregates, without edges if it lacks one; others are refused."""
        if self.encoder.config.weighted != graph.weighted:
            said = ("reads", "has none") if self.encoder.config.weighted else ("does not read", "has them")
            raise DataError(
                f"the model {said[0]} edge weights, and the graph {said[1]}; read its edges as in training, by "
                f"{setting('edge_weight')}"
            )
        ours, theirs = self.encoder.config.relations, tuple(graph.relations)
        if ours == theirs:
            return graph
        if not theirs or not set(theirs) < set(ours):
            shown = [", ".join(names) or "a single one" for names in (ours, theirs)]
            raise DataError(
                f"the model aggregates the relations {shown[0]}, and the graph has {shown[1]}; read its edges with the "
                f"same {setting('direction')} and {setting('edge_type')}"
            )
        some = next(iter(graph.relations.values()))
        none = some.indices[:0]
        empty = some.replace(
            indptr=torch.zeros_like(some.indptr),
            indices=none,
            edge_time=None if some.edge_time is None else some.edge_time[:0],
            edge_weight=None if some.edge_weight is None else some.edge_weight[:0],
        )
        ways = {name: "out" if name.endswith(" out") else "in" for name in ours}
        both = reads_both(graph)
        return graph.replace(
            relations={
                name: graph.relations.get(name, empty.replace(direction=ways[name]) if both else empty) for name in ours
            }
        )

    def _graph(self, graph: Graph | None) -> Graph:
        if graph is not None and not isinstance(graph, Graph):
            raise ConfigError(
                f"graph must be a Graph; got {type(graph).__name__}; make one with Graph.from_edges(edges, "
                "features=x), or pass tables as new_nodes and new_edges"
            )
        return self.run_graph() if graph is None else graph

    def run_graph(self) -> Graph:
        """The graph the model was trained on, with features. A model that was loaded from a run reads it there."""
        if self._trained is not None:
            return self._trained[0]
        known = self._own is not None
        own = self.run_data()
        if own.remark is not None and not known:
            warnings.warn(own.remark, DataWarning, stacklevel=2)
        return own.graph

    def run_split(self, graph: Graph | None = None) -> Split:
        """The split the model was trained with, for its own graph or, by node id, for another one."""
        known, split = self._known_split()
        if graph is None or graph is known:
            return split
        from graphsage.inference.run_data import split_of

        return split_of(graph, known, split)

    def _known_split(self) -> tuple[Graph, Split]:
        if self._trained is not None:
            return self._trained
        if self.folder is None:
            raise DataError("the model does not know its split; load it from a run, or give the split")
        own = self.run_data()
        return own.graph, own.split

    def run_data(self) -> "RunData":
        """The data the model was trained on, opened once."""
        if self._own is None:
            from graphsage.inference.run_data import open_run_data

            self._own = open_run_data(self)
            if self._own.capped is not None:
                self._drawn = self._own.graph, self._own.capped
        return self._own

    def attach(
        self, graph: Graph | None, new_nodes: Any = None, new_edges: Any = None, new_vectors: Any = None
    ) -> "Attached":
        """`graph` grown by tables of new nodes and edges; without a graph, one of the new rows alone."""
        from graphsage.inference.new_rows import attach
        from graphsage.inference.run_data import edge_scale, table_spec

        spec, scale = table_spec(self.about), edge_scale(self.about)
        types = () if spec is None or spec.edge_type is None else self._edge_types(spec.direction)
        attached = attach(graph, self.features, new_nodes, new_edges, spec, new_vectors, self.limits, types, scale)
        if attached.ignored:
            names = ", ".join(map(repr, attached.ignored))
            warnings.warn(
                f"columns of new rows that the model does not use are ignored: {names}", DataWarning, stacklevel=3
            )
        return attached

    @torch.no_grad()
    def probabilities(self, z: Tensor) -> Tensor:
        """Class probabilities of embeddings, calibrated if the training had validation nodes: softmax for one class a
        node, a sigmoid for each label where many. Features that follow an embedding are not read."""
        scores = self._scores(z)
        if self.regression:
            raise DataError("this model predicts numbers and no classes, so there are no probabilities; use predict")
        return self.calibration.probabilities(scores, self.multilabel)

    @torch.no_grad()
    def values(self, z: Tensor) -> Tensor:
        """Numbers that a regression predicts from embeddings, (B, T) float64, in the units of the targets."""
        scores = self._scores(z)
        if not isinstance(self.head, RegressionHead):
            raise DataError(f"this model predicts classes; numbers need {setting('task', 'regression')}")
        return check_finite(self.head.values(scores.to(self.device)).cpu())

    def _scores(self, z: Tensor) -> Tensor:
        """The head's outputs."""
        if self.links is not None:
            raise DataError("this model predicts links and no classes; use graphsage score or recommend")
        if self.head is None:
            raise DataError(
                f"this model was trained without labels and predicts nothing; "
                f"train it with {setting('task', 'supervised')}"
            )
        self.head.eval()
        return check_finite(self.head(z[:, : self.encoder.config.dim].contiguous().to(self.device)).cpu())

    def outputs(self, z: Tensor) -> tuple[Tensor, Tensor | None]:
        """What is predicted from embeddings, as `predict` returns it, and the probabilities of classes."""
        if self.regression:
            return self.values(z), None
        p = self.probabilities(z)
        return self.decide(p), p

    def predict(
        self, graph: Graph | None = None, nodes: Tensor | Sequence[int] | None = None, **options: Any
    ) -> Tensor:
        """The class of each node, (B,), as a place in `class_names`; 0 and 1 for each label, (B, C); or the numbers of
        a regression, (B, T) float64."""
        return self.outputs(self.embed(graph, nodes, **options))[0]

    def predict_proba(
        self, graph: Graph | None = None, nodes: Tensor | Sequence[int] | None = None, **options: Any
    ) -> Tensor:
        """Probabilities, (B, C). Options are those of `embed`."""
        return self.probabilities(self.embed(graph, nodes, **options))

    def decide(self, probabilities: Tensor) -> Tensor:
        return self.calibration.decide(probabilities, self.multilabel)

    @torch.no_grad()
    def calibrate(self, graph: Graph, nodes: Tensor, metric: str = "micro-f1", *, known: Tensor | None = None) -> None:
        """Choose the temperature, and the thresholds of labels, by labeled `nodes` of a graph: validation nodes.
        `known` are as in `embed`."""
        assert graph.labels is not None
        scores = self._scores(self.embed(graph, nodes, known=known))
        self.calibration = fitted(scores, graph.labels[nodes.to(graph.labels.device)].cpu(), metric)

    def score(
        self, pairs: Any, graph: Graph | None = None, *, inference: str | None = None, on_block: OnBlock | None = None
    ) -> Tensor:
        """Scores (P,) of links between nodes, the higher the more likely. `pairs` are row numbers (P, 2) of sources and
        targets, or a table (a path, pandas, polars, Arrow or a dict of columns) with their ids.

        Each pair is scored as if its edge did not exist, in either direction. Only for a model trained for links.
        """
        from graphsage.inference.links import head_of, read_pairs, score_pairs

        head_of(self)
        graph = self._graph(graph)
        numbers = isinstance(pairs, Tensor | np.ndarray | list | tuple)
        rows = torch.as_tensor(np.asarray(pairs)) if numbers else read_pairs(pairs, graph)
        if rows.dim() != 2 or rows.shape[1] != 2:
            raise DataError(f"{setting('pairs')} must be row numbers, (P, 2); got {tuple(rows.shape)}")
        rows = _rows(rows.reshape(-1), graph).view(-1, 2)
        return score_pairs(self, graph, rows, inference, on_block)

    def recommend(
        self,
        nodes: Tensor | Sequence[int] | None = None,
        k: int = 10,
        graph: Graph | None = None,
        *,
        new_nodes: Any = None,
        new_edges: Any = None,
        new_vectors: Any = None,
        inference: str | None = None,
        on_block: OnBlock | None = None,
    ) -> "Recommended":
        """The `k` targets that each of `nodes` (row numbers) is most likely linked to, without known links. With
        `new_nodes`, as in `embed`, the answers are for these, in the order of their table, among the older nodes.

        Up to 100,000 candidates the search is exact; above, an index (faiss) finds the share `recall` of them.
        """
        from graphsage.inference.links import head_of, recommend

        head_of(self)
        graph = base = self._graph(graph)
        if (nodes is None) == (new_nodes is None):
            raise ConfigError(f"give {setting('nodes')} of the graph or {setting('new_nodes')}, one of them")
        if new_nodes is not None or new_edges is not None:
            attached = self.attach(graph, new_nodes, new_edges, new_vectors)
            graph, nodes = attached.graph, attached.rows if nodes is None else nodes
        assert nodes is not None
        candidates = torch.arange(base.num_nodes)
        rows = _rows(nodes, graph)
        return recommend(self, graph, rows, k, candidates=candidates, inference=inference, on_block=on_block)

    def evaluate(
        self, graph: Graph | None = None, split: Split | None = None, part: str = "test", **options: Any
    ) -> "F1 | RegressionScores | LinkScores":
        """F1, or the errors of a regression, on a part of a split, unseen nodes attached to the full graph. Without a
        head, by the logistic probe. After training for links, how well the links of a part are found.

        A node of a class that the model does not know counts as wrong.

        By default the graph and the split are those of the training. Another graph gets the same split by node id.
        Validation or test nodes that were trained on are refused.
        """
        graph = self._graph(graph)
        split = self.run_split(graph) if split is None else split
        if self.links is not None:
            from graphsage.inference.links import evaluate_links

            return evaluate_links(self, graph, split, part, yardsticks=False, **options)["model"]
        return scores_of(self.answers(graph, split, (part,), **options)[part])

    def evaluate_parts(self, graph: Graph, split: Split, parts: Sequence[str], **options: Any) -> dict[str, F1]:
        """F1 on several parts, embedding and fitting the probe once."""
        return {
            part: f1_of(made.truth, made.decided) for part, made in self.answers(graph, split, parts, **options).items()
        }

    def answers(self, graph: Graph, split: Split, parts: Sequence[str], **options: Any) -> "dict[str, Answers]":
        """The predictions for the labeled nodes of `parts`, by the head or the logistic probe, embedding once."""
        if graph.labels is None:
            raise DataError("there are no labels to evaluate against; give a graph with labels")
        if len(split.codes) != graph.num_nodes:
            raise DataError(
                f"the split has {len(split.codes)} nodes and the graph {graph.num_nodes}; give its own split"
            )
        graph, _ = with_known_classes(self, graph)
        assert graph.labels is not None
        asked = {part: graph.labeled(split.nodes(part)) for part in parts}
        for part, nodes in asked.items():
            if not len(nodes):
                raise DataError(f"the {part} part of the split has no labeled node")
            self._check_unseen(graph, nodes, part)
        train = graph.labeled(split.nodes("train")) if self.head is None else None
        if train is not None:  # the probe's SGD reads them in turn, so their order must not be that of the rows
            train = train[torch.argsort(graph.keys.cpu()[train], stable=True)]
        groups = [*asked.values(), *([] if train is None else [train])]
        if self.label_inputs:
            options = {"known": graph.labeled(split.nodes("train")), **options}
        embedded = torch.split(self.embed(graph, torch.cat(groups), **options), [len(nodes) for nodes in groups])
        z = dict(zip([*asked, "probe"], embedded, strict=False))
        if train is None:
            return {part: Answers(graph.labels[nodes], *self.outputs(z[part])) for part, nodes in asked.items()}
        if graph.regression:
            raise DataError("the labels are numbers, which the logistic probe of this model does not predict")
        probe = Probe(self.seed).fit(z["probe"].numpy(), graph.labels[train].numpy())
        decided = {part: torch.from_numpy(probe.predict(z[part].numpy())) for part in asked}
        return {part: Answers(graph.labels[asked[part]], decided[part]) for part in asked}

    def _check_unseen(self, graph: Graph, nodes: Tensor, part: str) -> None:
        """Refuse to score training nodes of the training graph; warn of equal ids in another graph."""
        from graphsage.inference.run_data import split_of

        if part in ("train", "all"):
            return
        opened = self._own
        try:
            known, split = self._known_split()
        except GraphSageError:  # a bundle without a run, or a run whose data is gone
            return
        finally:
            self._own = opened  # run_graph() names changed files when it opens the data
        pairs = ((graph.indptr, known.indptr), (graph.indices, known.indices))
        same = all(a is b or (a.device == b.device and torch.equal(a, b)) for a, b in pairs)
        if not same and graph.ids is None:
            return
        try:
            trained = int(((split if same else split_of(graph, known, split)).codes[nodes] == TRAIN).sum())
        except DataError:  # ids of another type
            return
        if trained:
            if same:
                raise DataError(
                    f"{trained:,} of the {len(nodes):,} {part} nodes were trained on, so this is no {part} score; "
                    f"use the split of the training, or {setting('part', 'train')}"
                )
            warnings.warn(
                f"{trained:,} of the {len(nodes):,} {part} nodes have ids of trained nodes; if they are the same, "
                f"this is no {part} score",
                DataWarning,
                stacklevel=4,
            )

    def save(self, folder: str | Path) -> None:
        """Write the bundle: `model.safetensors` + `config.json` (+ the features' state)."""
        from graphsage.inference.bundle import save_bundle

        save_bundle(self, Path(folder))

    def _prepared(self, graph: Graph, by_key: bool) -> tuple[Graph, Graph]:
        """`graph` on the model's device, and the neighbor lists that inference reads, on request by key."""
        if self._last is None or self._last[0] is not graph or self._last[1].indptr.device != self.device:
            check_graph(graph)
            here = graph if graph.indptr.device == self.device else place(graph, self.device)
            self._last = (graph, here, self._capped(graph, here), False)
        if by_key and not self._last[3]:
            self._last = (*self._last[:2], with_lists_by_key(self._last[2]), True)
        return self._last[1:3]

    def _tables(self, here: Graph) -> list[Tensor]:
        """The input tables of a graph on the model's device; those of the last one are kept."""
        if self._read is None or self._read[0] is not here:
            self._read = here, input_tables(here, self.structure, self.num_features + self.structure.width)
        return self._read[1]

    @property
    def num_features(self) -> int:
        """Width of the features that a node brings itself, not by its edges or its label."""
        labels = label_width(self.num_classes) if self.label_inputs else 0
        return self.encoder.in_dim - self.structure.width - labels

    @property
    def num_classes(self) -> int:
        return 0 if self.head is None else self.head.linear.out_features

    def label_table(self, graph: Graph, known: Tensor) -> Tensor:
        """The labels of the nodes `known` as features (N, 1 + C), on their device; others are zero."""
        graph, _ = with_known_classes(self, graph)
        return label_features(graph.labels, known, graph.num_nodes, self.num_classes)

    def _known_labels(self, given: Graph, here: Graph, known: Tensor | Sequence[int] | None) -> Tensor:
        """`given` is `here` before it moved to the model's device."""
        if given.labels is None:
            raise DataError(
                f"the model reads known labels ({setting('label_inputs', True)}) and the graph has none; give a graph "
                "with the labels that are known"
            )
        if known is None:
            try:
                known = self.run_split(given).nodes("train")
            except DataError as error:
                raise DataError(
                    f"the model reads the labels of its training nodes and cannot find these ({error}); give the rows "
                    f"of nodes with known labels as {setting('known')}"
                ) from error
        rows = _rows(known, given)
        return self.label_table(here, here.labeled(rows.to(self.device)))

    def _capped(self, graph: Graph, here: Graph) -> Graph:
        """`here`, which is `graph` on the model's device, after the degree cap."""
        if self._drawn is not None:
            known, lists = self._drawn
            same = zip(graph.by_relation, known.by_relation, strict=False)
            if all(
                getattr(a, name) is getattr(b, name) for a, b in same for name in ("indptr", "indices", "edge_weight")
            ):
                lists = lists.to(self.device)
                return here.replace(
                    indptr=lists.indptr,
                    indices=lists.indices,
                    edge_time=None,
                    edge_weight=lists.edge_weight,
                    relations=lists.relations,
                )
        return neighbor_lists(here, self.sampling, self.seed)


def neighbor_lists(graph: Graph, sampling: SamplingConfig, seed: int) -> Graph:
    """The neighbors that a model reads: `graph` after the degree cap and, for Equation 2, without self loops. Weights
    that are all equal are left out: a mean is the same without them."""
    found = cap_degrees(graph, sampling.max_degree, seed=seed, cap=sampling.cap, self_loops=sampling.self_loops)
    return without_equal_weights(found)


def with_known_classes(model: Model, graph: Graph, name: str = "the graph") -> tuple[Graph, dict[str, int]]:
    """Labels renumbered to the model's classes; classes it lacks get new numbers; their node counts are returned."""
    ours, theirs = model.class_names, graph.class_names
    if model.head is not None and graph.labels is not None and model.regression != graph.regression:
        what = ("numbers", "classes") if model.regression else ("classes", "numbers")
        raise DataError(f"the model predicts {what[0]}, and the labels of {name} are {what[1]}")
    if model.regression and graph.regression:
        return _with_known_targets(model, graph, name)
    if model.head is None or graph.labels is None or ours is None or theirs is None or ours == theirs:
        return graph, {}
    unknown = [c for c in theirs if c not in ours]
    if len(unknown) == len(theirs):
        raise DataError(f"{name} has a class {unknown[0]!r} that the model does not know; it knows {_some(ours)}")
    everyone = (*ours, *unknown)
    places = torch.tensor([everyone.index(c) for c in theirs], device=graph.labels.device)
    if graph.multilabel:
        labels = graph.labels.new_zeros(graph.num_nodes, len(everyone))
        labels[:, places] = graph.labels
        known = known_labels(graph.labels)
        counts = {c: int(labels[known, everyone.index(c)].sum()) for c in unknown}
        labels[~known] = UNKNOWN
    else:
        labels = torch.where(graph.labels >= 0, places[graph.labels.clamp(min=0).long()], -1)
        counts = {c: int((labels == everyone.index(c)).sum()) for c in unknown}
    return graph.replace(labels=labels, class_names=everyone), counts


def _with_known_targets(model: Model, graph: Graph, name: str) -> tuple[Graph, dict[str, int]]:
    """The columns of targets in the model's order; those it lacks are left out and counted."""
    assert model.head is not None
    assert graph.labels is not None
    width = model.head.linear.out_features
    ours, theirs = model.class_names, graph.class_names
    if ours is None or theirs is None or ours == theirs:
        if graph.labels.shape[1] != width:
            raise DataError(f"{name} has {graph.labels.shape[1]} targets, and the model predicts {width}")
        return graph, {}
    if not set(ours) & set(theirs):
        raise DataError(f"{name} has a target {theirs[0]!r} that the model does not predict; it predicts {_some(ours)}")
    labels = graph.labels.new_full((graph.num_nodes, width), math.nan)
    for column, target in enumerate(ours):
        if target in theirs:
            labels[:, column] = graph.labels[:, theirs.index(target)]
    counts = dict(zip(theirs, graph.class_counts(), strict=True))
    left_out = {target: count for target, count in counts.items() if target not in ours}
    return graph.replace(labels=labels, class_names=ours), left_out


def f1_of(truth: Tensor, predicted: Tensor) -> F1:
    """Scores of predictions in the model's classes; `truth` may have more labels than the model knows."""
    return f1_scores(truth.cpu().numpy(), _padded(predicted, truth).numpy())


def scores_of(made: Answers) -> F1 | RegressionScores:
    """F1 of classes or labels, or the errors of numbers."""
    if made.truth.is_floating_point():
        return regression_scores(made.truth.cpu().numpy(), made.decided.numpy())
    return f1_of(made.truth, made.decided)


@dataclass(frozen=True)
class Quality:
    """Scores of each class, and how well probabilities are calibrated, if there are any."""

    classes: list[ClassScores]
    reliability: list[Bin] | None = None
    calibration_error: float | None = None


def quality(made: Answers, graph: Graph) -> Quality:
    """Of predictions for nodes of `graph`, whose labels have its numbers (`with_known_classes`)."""
    truth, decided = made.truth.cpu().numpy(), _padded(made.decided, made.truth).numpy()
    count = max(graph.num_classes, int(decided.max()) + 1 if decided.ndim == 1 else decided.shape[1])
    names = graph.class_names or tuple(map(str, range(count)))
    classes = class_report(truth, decided, names)
    if made.probabilities is None:
        return Quality(classes)
    bins = reliability(truth, made.probabilities.numpy())
    return Quality(classes, bins, calibration_error(bins))


def score_of(metric: Metric, answers: "Answers") -> float:
    """The score of predictions for nodes of known labels."""
    truth, decided = answers.truth, _padded(answers.decided, answers.truth)
    p = decided if answers.probabilities is None else answers.probabilities
    return metric.score(truth.cpu().numpy(), p.numpy(), decided.numpy())


def _padded(decided: Tensor, truth: Tensor) -> Tensor:
    """Decisions with a column for each label of `truth`, also for those that the model does not know."""
    if truth.dim() == 1:
        return decided
    return torch.nn.functional.pad(decided, (0, truth.shape[1] - decided.shape[1]))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def load(folder: str | Path) -> Model:
    """Load a bundle. Nothing in it can execute code."""
    from graphsage.inference.bundle import load_bundle

    return load_bundle(Path(folder))


def check_finite(z: Tensor, nodes: Tensor | None = None) -> Tensor:
    """`z` (of `nodes`), if no number in it overflowed."""
    if math.isfinite(z.sum().item()):  # one pass without a temporary; NaN and infinity remain in a sum
        return z
    odd = torch.nonzero(~torch.isfinite(z).all(dim=1)).flatten()
    if len(odd):
        first = int(odd[0] if nodes is None else nodes[odd[0]])
        raise DataError(
            f"the results of {len(odd)} nodes overflowed, first that of node {first}; look for huge features of the "
            "node and its neighbors"
        )
    return z


def check_identity(encoder: Encoder, num_nodes: int) -> None:
    """Refuse another number of nodes than the one that an encoder with learned identities knows."""
    identity = encoder.identity
    if identity is not None and num_nodes != identity.num_embeddings:
        raise DataError(
            f"this model learned a vector for each of its {identity.num_embeddings} training nodes "
            f"({setting('identity_dim')}) and cannot embed a graph of {num_nodes}; "
            f"train with features or {setting('degree_features', True)} for new nodes"
        )


def input_tables(graph: Graph, structure: Structure, in_dim: int | None = None) -> list[Tensor]:
    """The tables whose rows, side by side, are x_v; features by edges are those of `graph`, before the cap."""
    own = [] if graph.features is None else [graph.features]
    width = sum(table.shape[1] for table in own) + structure.width
    if in_dim is not None and width != in_dim:
        raise DataError(f"the model was trained on {in_dim} features per node; this graph has {width}")
    return own + structure.of_graph(graph)


def graph_bytes(graph: Graph) -> int:
    """What a graph takes on disk."""
    parts = (graph, *graph.relations.values())
    tensors = [value for part in parts for value in vars(part).values() if isinstance(value, Tensor)]
    ids = 0 if graph.ids is None else sum(array.nbytes for array in graph.ids.arrays().values())
    return ids + sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _rows(nodes: Tensor | Sequence[int], graph: Graph) -> Tensor:
    given = nodes.cpu().numpy() if isinstance(nodes, Tensor) else np.asarray(nodes)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise DataError(
            f"nodes must be row numbers, (B,); got {given.dtype} {given.shape}; "
            "graph.rows_of(ids) finds the rows of ids"
        )
    rows = torch.from_numpy(given.astype(np.int64))
    bad = torch.nonzero((rows < 0) | (rows >= graph.num_nodes))
    if len(bad):
        raise DataError(f"node {int(rows[bad[0, 0]])} is not in the graph; its rows are 0 to {graph.num_nodes - 1}")
    return rows
