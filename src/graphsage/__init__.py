"""GraphSAGE: embeddings and predictions for nodes and graphs that did not exist at training time.

The public names below are loaded when first used, so that `graphsage --help` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from graphsage.version import __version__ as __version__

if TYPE_CHECKING:
    from graphsage.datasets.dataset import Dataset as Dataset
    from graphsage.datasets.open import open_data as open_data
    from graphsage.datasets.tables import open_tables as open_tables
    from graphsage.errors import BundleError as BundleError
    from graphsage.errors import ConfigError as ConfigError
    from graphsage.errors import DataError as DataError
    from graphsage.errors import GraphError as GraphError
    from graphsage.errors import GraphSageError as GraphSageError
    from graphsage.errors import OutputError as OutputError
    from graphsage.estimator import GraphSageClassifier as GraphSageClassifier
    from graphsage.estimator import GraphSageEmbedder as GraphSageEmbedder
    from graphsage.estimator import GraphSageRegressor as GraphSageRegressor
    from graphsage.execution.user_aggregators import register_aggregator as register_aggregator
    from graphsage.graph.cap import cap_degrees as cap_degrees
    from graphsage.graph.graph import Graph as Graph
    from graphsage.graph.split import Split as Split
    from graphsage.graph.split import training_graph as training_graph
    from graphsage.inference.model import Model as Model
    from graphsage.inference.model import load as load
    from graphsage.kernels.gather import gather_max as gather_max
    from graphsage.kernels.gather import gather_mean as gather_mean
    from graphsage.kernels.gather import gather_sum as gather_sum
    from graphsage.kernels.neighborhood import Minibatch as Minibatch
    from graphsage.kernels.neighborhood import Neighborhood as Neighborhood
    from graphsage.model.aggregators.base import Aggregator as Aggregator
    from graphsage.model.encoder import Encoder as Encoder
    from graphsage.model.encoder import EncoderConfig as EncoderConfig
    from graphsage.sampling.minibatch import sample_minibatch as sample_minibatch
    from graphsage.sampling.minibatch import whole_graph as whole_graph
    from graphsage.tables.spec import TableSpec as TableSpec
    from graphsage.training.config import Config as Config
    from graphsage.training.train import train as train

_HOME = {
    "Aggregator": "graphsage.model.aggregators.base",
    "BundleError": "graphsage.errors",
    "Config": "graphsage.training.config",
    "ConfigError": "graphsage.errors",
    "DataError": "graphsage.errors",
    "Dataset": "graphsage.datasets.dataset",
    "Encoder": "graphsage.model.encoder",
    "EncoderConfig": "graphsage.model.encoder",
    "Graph": "graphsage.graph.graph",
    "GraphError": "graphsage.errors",
    "GraphSageClassifier": "graphsage.estimator",
    "GraphSageEmbedder": "graphsage.estimator",
    "GraphSageRegressor": "graphsage.estimator",
    "GraphSageError": "graphsage.errors",
    "Minibatch": "graphsage.kernels.neighborhood",
    "Model": "graphsage.inference.model",
    "Neighborhood": "graphsage.kernels.neighborhood",
    "OutputError": "graphsage.errors",
    "Split": "graphsage.graph.split",
    "TableSpec": "graphsage.tables.spec",
    "cap_degrees": "graphsage.graph.cap",
    "gather_max": "graphsage.kernels.gather",
    "gather_mean": "graphsage.kernels.gather",
    "gather_sum": "graphsage.kernels.gather",
    "load": "graphsage.inference.model",
    "open_data": "graphsage.datasets.open",
    "open_tables": "graphsage.datasets.tables",
    "register_aggregator": "graphsage.execution.user_aggregators",
    "sample_minibatch": "graphsage.sampling.minibatch",
    "train": "graphsage.training.train",
    "training_graph": "graphsage.graph.split",
    "whole_graph": "graphsage.sampling.minibatch",
}

__all__ = sorted(_HOME)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'graphsage' has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]
