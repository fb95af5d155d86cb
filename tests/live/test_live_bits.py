"""The same node, graph and model give the same vector, bit for bit: alone, in a batch, sent along or stored."""

import copy
from pathlib import Path

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from encoders import encoder_of
from graphs import SEEDS
from graphsage.graph.build import from_edges
from graphsage.graph.graph import UNKNOWN, Graph
from graphsage.graph.ids import node_key
from graphsage.inference.model import Model
from graphsage.kernels.block_linear import ROWS, BlockLinear
from graphsage.live.change import Change, NodeChange
from graphsage.live.deterministic_matmul import deterministic
from graphsage.live.embed import LiveEncoder
from graphsage.live.materialize import whole
from graphsage.live.overlay import Overlay
from graphsage.live.overlay_view import Target
from graphsage.model.aggregators import AGGREGATORS
from graphsage.model.encoder import EncoderConfig
from graphsage.sampling.minibatch import SamplingConfig
from graphsage.serving.index import embed_everything
from graphsage.serving.served_model import ready
from live_models import features_of, graph_of, live_from, model_of, overlay_of, vectors

IDS = [f"n{i}" for i in range(40)]


def crowded(directed: bool = False) -> tuple[dict[str, object], set[tuple[str, str]]]:
    """40 nodes; the first is joined with all, the rest in two rings: hubs and others, with a cap of 3."""
    edges = {(IDS[0], id) for id in IDS[1:]} | {(IDS[i], IDS[(i + step) % 40]) for i in range(40) for step in (1, 2)}
    return {id: features_of(id) for id in IDS}, edges


@pytest.mark.parametrize("inference", ["exact", "sampled"])
@pytest.mark.parametrize("aggregator", [*AGGREGATORS])
@pytest.mark.parametrize("options", [{}, {"layers": 3, "degrees": True}, {"redraw": False, "max_degree": None}])
def test_alone_or_in_a_batch(aggregator: str, inference: str, options: dict[str, object]) -> None:
    model = model_of(aggregator, **options)  # type: ignore[arg-type]
    overlay = overlay_of(graph_of(*crowded()), model)
    together = vectors(overlay, model, IDS, inference)
    for place in (0, 7, 39):
        assert torch.equal(vectors(overlay, model, [IDS[place]], inference)[0], together[place])
        few = vectors(overlay, model, [IDS[3], IDS[place], IDS[3]], inference)
        assert torch.equal(few[1], together[place])
        assert torch.equal(few[0], few[2])


@pytest.mark.parametrize("inference", ["exact", "sampled"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("aggregator", ["mean", "pool", "lstm"])
def test_a_node_that_is_sent_along_has_the_vector_it_would_have_if_stored(
    aggregator: str, directed: bool, inference: str, tmp_path: Path
) -> None:
    model = model_of(aggregator, degrees=True)
    ready = LiveEncoder.of(model, inference)
    around = [IDS[0], IDS[5], IDS[6], IDS[20]]
    with live_from(tmp_path / "store", graph_of(*crowded(), directed=directed), model) as live:
        live.apply(Change((NodeChange("before", features_of("before")),), (("before", IDS[5]), (IDS[6], "before"))))
        with live.reading() as (overlay, _):
            before = vectors(overlay, model, IDS, inference)
            rows = [row for id in around if (row := overlay.find(id)) is not None]
            sent = Target(*overlay.visitor(node_key("new"), features_of("new"), rows))
            other = Target(*overlay.visitor(node_key("else"), features_of("else"), rows[:1]))
            alone, batch = ready.embed([sent])[0], ready.embed([other, Target(overlay, 3), sent])[2]
            assert torch.equal(before, vectors(overlay, model, IDS, inference)), "asking changed the graph"
        live.apply(Change((NodeChange("new", features_of("new")),), tuple((id, "new") for id in around)))
        with live.reading() as (overlay, _):
            stored = vectors(overlay, model, ["new"], inference)[0]
        live.compact()
        with live.reading() as (overlay, _):
            assert torch.equal(vectors(overlay, model, ["new"], inference)[0], stored)
    assert torch.equal(alone, stored)
    assert torch.equal(batch, stored)


@pytest.mark.parametrize("inference", ["exact", "sampled"])
@pytest.mark.parametrize("multilabel", [False, True])
def test_label_inputs_are_the_labels_that_the_graph_stores(multilabel: bool, inference: str, tmp_path: Path) -> None:
    nodes, edges = crowded()
    classes = torch.arange(40) % 4 - 1  # a quarter of the nodes has no label
    labels = torch.zeros(40, 3, dtype=torch.uint8).where(
        classes[:, None] >= 0, torch.tensor(UNKNOWN, dtype=torch.uint8)
    )
    labels[classes >= 0, classes[classes >= 0]] = 1
    names = [f"kind {number}" for number in range(3)]
    graph = graph_of(nodes, edges, labels=labels if multilabel else classes, class_names=names)
    model = model_of(classes=3, label_inputs=True, max_degree=None)

    def every_label(graph: Graph) -> torch.Tensor:
        return model.embed(graph, inference=inference, known=torch.arange(graph.num_nodes))

    with live_from(tmp_path / "store", graph, model) as live:
        with live.reading() as (overlay, _):
            before = vectors(overlay, model, IDS, inference)
            torch.testing.assert_close(before, every_label(graph))
            sent = Target(*overlay.visitor(node_key("new"), features_of("new"), [3, 4]))
            alone = LiveEncoder.of(model, inference).embed([sent])[0]
        live.apply(Change((NodeChange("new", features_of("new")),), ((IDS[3], "new"), (IDS[4], "new"))))
        with live.reading() as (overlay, _):
            assert torch.equal(vectors(overlay, model, ["new"], inference)[0], alone)
            _, z, _ = embed_everything(overlay, ready(model, "1", inference))
            between = vectors(overlay, model, [*IDS, "new"], inference)
            torch.testing.assert_close(torch.from_numpy(z), between)
        live.apply(Change((NodeChange(IDS[4], label=(0, 2) if multilabel else 2),)))
        with live.reading() as (overlay, _):
            after = vectors(overlay, model, [*IDS, "new"], inference)
            torch.testing.assert_close(after, every_label(whole(overlay).graph))
    assert not torch.equal(after, between), "a node has another label"


@given(st.integers(1, 3 * ROWS), st.integers(0, 3 * ROWS - 1), st.integers(1, 70), st.integers(1, 70), SEEDS)
@example(16, 15, 512, 20, 0)
@example(40, 33, 64, 256, 0)
@example(16, 15, 256, 7, 0)  # so narrow that a block's last rows may be added up in another order than its first
def test_a_row_in_blocks_is_the_same_bits_among_any_rows(
    height: int, place: int, wide: int, out: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    linear = torch.nn.Linear(wide, out)
    torch.nn.init.normal_(linear.weight, generator=generator)
    plain = copy.deepcopy(linear)
    BlockLinear.over(linear)
    rows = torch.randn(height, wide, generator=generator)
    place %= height
    with torch.no_grad():
        assert torch.equal(linear(rows)[place], linear(rows[place : place + 1])[0])
        assert torch.allclose(linear(rows), plain(rows), atol=1e-4)


def test_blocks_share_the_weights_and_leave_the_model_alone() -> None:
    encoder = model_of().encoder
    copied = deterministic(encoder)
    for ours, theirs in zip(copied.parameters(), encoder.parameters(), strict=True):
        assert ours is theirs
    assert not any(isinstance(part, BlockLinear) for part in encoder.modules())
    assert any(isinstance(part, BlockLinear) for part in copied.modules())


def test_draws_do_not_depend_on_row_numbers() -> None:
    nodes, edges = crowded()
    model = model_of(inference="sampled", max_degree=None)
    kept = {id: nodes[id] for id in IDS[1:]}  # one row less below everybody
    without = overlay_of(graph_of(kept, {e for e in edges if IDS[0] not in e}), model)
    fewer: Overlay = overlay_of(graph_of(nodes, {e for e in edges if IDS[0] not in e}), model)
    assert torch.equal(vectors(without, model, IDS[1:]), vectors(fewer, model, IDS[1:]))


@pytest.mark.parametrize("more", [{}, {"layer_norm": True, "residual": True}], ids=["paper", "norm and skip"])
@pytest.mark.parametrize("aggregator", ["mean", "gcn", "pool", "meanpool"])
def test_wide_layers_give_the_same_bits_in_any_company(aggregator: str, more: dict[str, bool]) -> None:
    """Narrow matrices may come out equal by luck; these do not without blocks."""
    generator = torch.Generator().manual_seed(0)
    wide, count = 96, 80
    config = EncoderConfig(aggregator=aggregator, dim=128, hidden_dim=256, **more)
    model = Model(encoder_of(config, wide), None, SamplingConfig(max_degree=None))
    pairs = torch.randint(count, (400, 2), generator=generator)
    graph = from_edges(pairs, count, features=torch.randn(count, wide, generator=generator))
    overlay, ready = overlay_of(graph, model), LiveEncoder.of(model)
    together = ready.embed([Target(overlay, row) for row in range(count)])
    for row in range(0, count, 9):
        assert torch.equal(ready.embed([Target(overlay, row)])[0], together[row])
    assert torch.allclose(together, model.embed(graph), atol=1e-5)
