import pytest
import torch

from graphsage.inference.feature_placement import place
from planted import planted_graph


def test_a_graph_from_elsewhere_is_placed_whole() -> None:
    """The meta device stands for a GPU: a graph that lies there must not leave its features behind."""
    graph = planted_graph()
    assert graph.features is not None
    elsewhere = graph.replace(features=graph.features.to("meta"))
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        place(elsewhere, torch.device("cpu"))


@pytest.mark.parametrize("name", [None, "float16", "bfloat16"])
def test_features_become_the_type_that_was_asked_for(name: str | None) -> None:
    placed = place(planted_graph(), torch.device("cpu"), name).features
    assert placed is not None
    assert placed.dtype == getattr(torch, name or "float32")


def test_a_graph_without_features_is_placed_as_it_is() -> None:
    assert place(planted_graph().replace(features=None), torch.device("cpu")).features is None
