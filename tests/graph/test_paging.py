"""What the system is told about mapped tables."""

import numpy as np
import torch

from graphsage.graph.paging import exceeds_memory, memory_available, read_ahead
from graphsage.graph.storage import load_array, open_graph, save_graph
from planted import planted_graph


def test_the_system_is_told_how_a_mapped_table_is_read(tmp_path) -> None:
    graph = planted_graph()
    save_graph(graph, tmp_path / "graph")
    features = open_graph(tmp_path / "graph").features
    before = features.clone()
    assert read_ahead(features, False)
    assert read_ahead(features, True)
    assert torch.equal(features, before)
    assert not read_ahead(features[:0], False)


def test_a_table_larger_than_memory_is_known_before_it_is_read(tmp_path) -> None:
    available = memory_available()
    assert 1 << 20 < available < 1 << 50
    path = tmp_path / "huge.npy"
    header = np.lib.format.open_memmap(path, "w+", np.float16, (available // 2 // 1000 + 2000, 1000))  # sparse on disk
    del header
    assert exceeds_memory(torch.utils.dlpack.from_dlpack(load_array(path)))
    assert not exceeds_memory(planted_graph().features)
