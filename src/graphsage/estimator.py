"""The scikit-learn face: `GraphSageClassifier`, `GraphSageRegressor` and `GraphSageEmbedder`.

With `graph=` the rows of X are node numbers, shape (n,) or (n, 1): `fit` trains on those nodes with the edges among
them and nothing else, so cross-validation is inductive by itself, and `predict` attaches the asked nodes to the full
graph. Without a graph, X holds features and every node is alone: what is left is a network on the features.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from graphsage.errors import ConfigError, DataError, setting
from graphsage.graph.build import as_targets
from graphsage.graph.graph import UNKNOWN, Graph
from graphsage.graph.split import NONE, TRAIN, Split
from graphsage.training.config import Config
from graphsage.training.train import train

Array = npt.NDArray[Any]


class _GraphSage(BaseEstimator):  # type: ignore[misc]
    """What the estimators share. The constructor only stores; `fit` builds and checks the Config."""

    _task = "supervised"

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        aggregator: str = "mean",
        form: str | None = None,
        sample_sizes: tuple[int, ...] = (25, 10),
        dim: int = 256,
        epochs: int | None = None,
        steps: int | None = None,
        batch_size: int = 512,
        lr: float | None = None,
        dropout: float | None = None,
        max_degree: int | None = None,
        settings: dict[str, Any] | None = None,
        device: str = "auto",
        random_state: Any = 0,
    ) -> None:
        self.graph = graph
        self.aggregator = aggregator
        self.form = form
        self.sample_sizes = sample_sizes
        self.dim = dim
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.dropout = dropout
        self.max_degree = max_degree
        self.settings = settings
        self.device = device
        self.random_state = random_state

    def _config(self) -> Config:
        names = (
            "aggregator",
            "form",
            "sample_sizes",
            "dim",
            "epochs",
            "steps",
            "batch_size",
            "lr",
            "dropout",
            "max_degree",
        )
        named = {name: getattr(self, name) for name in names}
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        if (self.settings or {}).get("task") == "links":
            raise ConfigError(f"the estimators learn nodes and no links; call train with {setting('task', 'links')}")
        return Config.from_dict({"task": self._task, "seed": int(seed), **named, **(self.settings or {})})

    def _where(self, X: Any, *, fitting: bool = False, **checks: Any) -> tuple[Graph, torch.Tensor]:
        """The graph that X speaks of, and X's rows in it."""
        if self.graph is None:
            table = validate_data(self, X, reset=fitting, dtype=np.float32, **checks)
            graph = Graph.from_edges(np.zeros((0, 2), np.int64), len(table), features=table)
            return graph, torch.arange(len(table))
        rows = np.asarray(X)
        rows = rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 else rows
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise DataError(
                f"with graph=, X must be node numbers of shape (n,) or (n, 1); got {rows.dtype} {rows.shape}"
            )
        if len(rows) and not (rows.min() >= 0 and rows.max() < self.graph.num_nodes):
            raise DataError(f"X must hold nodes 0 to {self.graph.num_nodes - 1}; got {rows.min()} to {rows.max()}")
        return self.graph, torch.from_numpy(rows.astype(np.int64))

    def _fit(self, graph: Graph, rows: torch.Tensor) -> None:
        codes = torch.full((graph.num_nodes,), NONE, dtype=torch.uint8)
        codes[rows] = TRAIN
        self.model_ = train(graph, Split(codes), self._config(), device=self.device)

    def _embed(self, X: Any) -> torch.Tensor:
        check_is_fitted(self)
        graph, rows = self._where(X)
        if self.model_.label_inputs:
            graph = self.model_.run_graph()  # `graph` with the labels that `fit` was given
        return self.model_.embed(graph, rows)


class GraphSageClassifier(ClassifierMixin, _GraphSage):  # type: ignore[misc]
    """Classes of nodes, learned with supervision. y holds one class a row, or 0 and 1 for each of C labels."""

    def fit(self, X: Any, y: Any) -> "GraphSageClassifier":
        graph, rows = self._where(X, fitting=True)
        if y is None:
            raise DataError("GraphSageClassifier requires y to be passed, but the target y is None")
        answers = np.asarray(y)
        if len(answers) != len(rows):
            raise DataError(f"X has {len(rows)} rows and y {len(answers)}; they must go together")
        if answers.ndim == 2 and answers.shape[1] > 1:
            self.classes_: Array = np.arange(answers.shape[1])
            labels = torch.full((graph.num_nodes, answers.shape[1]), UNKNOWN, dtype=torch.uint8)
            labels[rows] = torch.from_numpy((answers > 0).astype(np.uint8))
        else:
            answers = column_or_1d(answers, warn=True)
            assert_all_finite(answers, input_name="y")
            check_classification_targets(answers)
            self.classes_, codes = np.unique(answers, return_inverse=True)
            labels = torch.full((graph.num_nodes,), -1, dtype=torch.int64)
            labels[rows] = torch.from_numpy(codes.astype(np.int64))
        # Without names the columns of y are the labels, also those that no row has.
        names = None if labels.dim() == 2 else tuple(str(name) for name in self.classes_)
        self._fit(graph.replace(labels=labels, class_names=names), rows)
        return self

    def predict_proba(self, X: Any) -> Array:
        z = self._embed(X)
        return self.model_.probabilities(z).numpy()

    def predict(self, X: Any) -> Array:
        z = self._embed(X)
        decided = self.model_.decide(self.model_.probabilities(z)).numpy()
        return decided if self.model_.multilabel else self.classes_[decided]


class GraphSageRegressor(RegressorMixin, _GraphSage):  # type: ignore[misc]
    """Numbers of nodes. y holds one a row, or T of them."""

    _task = "regression"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> "GraphSageRegressor":
        graph, rows = self._where(X, fitting=True)
        if y is None:
            raise DataError("GraphSageRegressor requires y to be passed, but the target y is None")
        answers = np.asarray(y)
        if len(answers) != len(rows):
            raise DataError(f"X has {len(rows)} rows and y {len(answers)}; they must go together")
        try:
            answers = answers.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"y must hold numbers; {error}") from None
        assert_all_finite(answers, input_name="y")
        self._flat = answers.ndim == 1
        answers = answers[:, None] if self._flat else answers
        targets = np.full((graph.num_nodes, answers.shape[1]), np.nan)
        targets[rows.numpy()] = answers
        self._fit(graph.replace(labels=as_targets(targets, graph.num_nodes), class_names=None), rows)
        return self

    def predict(self, X: Any) -> Array:
        z = self._embed(X)
        values: Array = self.model_.values(z).numpy()
        return values[:, 0] if self._flat else values


class GraphSageEmbedder(TransformerMixin, _GraphSage):  # type: ignore[misc]
    """Embeddings of nodes, learned from the graph alone (Equation 1). It needs a graph: pairs come from its walks."""

    _task = "unsupervised"

    def fit(self, X: Any, y: Any = None) -> "GraphSageEmbedder":
        if self.graph is None:
            raise DataError("GraphSageEmbedder learns from edges; give it graph=, or use GraphSageClassifier")
        graph, rows = self._where(X, fitting=True)
        self._fit(graph, rows)
        return self

    def transform(self, X: Any) -> Array:
        return self._embed(X).numpy()
