import importlib

import graphsage


def test_the_public_names_are_these_and_all_can_be_imported() -> None:
    assert graphsage.__all__ == [
        "Aggregator", "BundleError", "Config", "ConfigError", "DataError", "Dataset", "Graph", "GraphError",
        "GraphSageClassifier", "GraphSageEmbedder", "GraphSageError", "Model", "OutputError", "Split", "TableSpec",
        "load", "open_data", "open_tables", "register_aggregator", "train",
    ]  # fmt: skip
    for name in graphsage.__all__:
        assert getattr(importlib.import_module("graphsage"), name).__name__ == name
