import importlib

import graphsage


def test_the_public_names_are_these_and_all_can_be_imported() -> None:
    assert graphsage.__all__ == [
        "Aggregator",
        "BundleError",
        "Config",
        "ConfigError",
        "DataError",
        "Dataset",
        "Encoder",
        "EncoderConfig",
        "Graph",
        "GraphError",
        "GraphSageClassifier",
        "GraphSageEmbedder",
        "GraphSageError",
        "GraphSageRegressor",
        "Minibatch",
        "Model",
        "Neighborhood",
        "OutputError",
        "Split",
        "TableSpec",
        "cap_degrees",
        "gather_max",
        "gather_mean",
        "gather_sum",
        "load",
        "open_data",
        "open_tables",
        "register_aggregator",
        "sample_minibatch",
        "train",
        "training_graph",
        "whole_graph",
    ]
    for name in graphsage.__all__:
        found = getattr(importlib.import_module("graphsage"), name)
        assert getattr(found, "__name__", name) == name  # a union of types has no name
