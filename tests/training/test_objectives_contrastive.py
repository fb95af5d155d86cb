"""The contrastive objective: views, columns, and what it needs."""

from dataclasses import replace

import pytest
import torch

import graphsage as gs
from graphsage.errors import ConfigError
from graphsage.training.config import Config
from graphsage.training.objectives import make_objective
from graphsage.training.objectives.contrastive import Contrastive, projection_head
from graphsage.training.train import Run, set_up
from planted import SMALL, planted_graph, planted_split

CPU = torch.device("cpu")


def run_of(**options: object) -> tuple[Run, Contrastive]:
    graph = planted_graph()
    settings = {**SMALL, "task": "unsupervised", "objective": "contrastive", **options}
    run = set_up(graph, planted_split(graph), Config.from_dict(settings).resolved(), CPU, {})
    assert isinstance(run.objective, Contrastive)
    return run, run.objective


def edges_of(graph: gs.Graph) -> set[tuple[int, int]]:
    return set(zip(graph.edge_rows.tolist(), graph.indices[: int(graph.indptr[-1])].tolist(), strict=True))


def test_views_lack_a_share_of_the_edges_in_both_directions_and_change_each_epoch() -> None:
    run, objective = run_of(edge_dropout=0.3)
    whole = edges_of(run.data.capped)
    seen = []
    for step in (0, objective.epochs.steps):
        objective.choose_examples(step)
        for view in objective.views:
            edges = edges_of(view.graph)
            assert edges < whole
            assert {(b, a) for a, b in edges} == edges
            assert 0.55 < len(edges) / len(whole) < 0.85
            seen.append(frozenset(edges))
    assert len(set(seen)) == 4
    objective.choose_examples(0)  # as a resumed run reads them
    assert [frozenset(edges_of(view.graph)) for view in objective.views] == seen[:2]


def test_a_view_reads_the_dropped_columns_of_all_nodes_as_their_mean() -> None:
    for aggregator, repeats in (("mean", 2), ("pool", 1)):
        _, objective = run_of(feature_dropout=0.5, aggregator=aggregator, edge_dropout=0.0)
        examples = tuple(tensor[0] for tensor in objective.choose_examples(0))
        gathered = objective.gather(examples)
        dropped = [(inputs.x == 0).all(dim=0).view(repeats, 6) for inputs in (gathered.one, gathered.other)]
        assert all(bool((each == each[0]).all()) for each in dropped)
        assert any(0 < int(each[0].sum()) < 6 for each in dropped)
        assert not torch.equal(dropped[0], dropped[1])


def test_pairs_are_training_nodes_and_nodes_of_a_short_walk() -> None:
    run, objective = run_of(walk_length=2, batch_size=72)
    u, v = (tensor[0] for tensor in objective.choose_examples(0)[:2])
    assert sorted(u.tolist()) == sorted(run.data.nodes.tolist())
    whole = edges_of(run.data.graph)
    same = u == v
    assert 0 < int(same.sum()) < len(u)
    assert all(pair in whole for pair in zip(u[~same].tolist(), v[~same].tolist(), strict=True))


def test_the_projection_is_trained_and_not_in_the_model() -> None:
    run, _ = run_of()
    assert set(run.module) == {"encoder", "projection"}
    graph = planted_graph()
    model = gs.train(graph, planted_split(graph), task="unsupervised", objective="contrastive", **SMALL)
    assert model.head is None
    assert model.embed(graph).shape == (120, 8)


def test_several_ranks_are_refused() -> None:
    run, _ = run_of()
    config = Config.from_dict({**SMALL, "task": "unsupervised", "objective": "contrastive"}).resolved()
    data = replace(run.data, rank=0, ranks=2)
    with pytest.raises(ConfigError, match="compares all pairs of a batch and runs in one process"):
        make_objective(config, run.model.encoder, None, data, projection_head(8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"edge_dropout": 1.0}, "edge_dropout must be at least 0 and below 1"),
        ({"feature_dropout": -0.1}, "feature_dropout must be at least 0 and below 1"),
        ({"objective": "bgrl"}, "objective must be one of equation-1, contrastive"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config.from_dict({"task": "unsupervised", "objective": "contrastive", **options})


def test_settings_of_the_other_objective_are_reported() -> None:
    config = Config.from_dict({"task": "unsupervised", "objective": "contrastive", "num_walks": 3}).resolved()
    assert config.without_effect() == [
        "num_walks has no effect with objective='contrastive'; it needs objective='equation-1'"
    ]
    config = Config.from_dict({"task": "unsupervised", "objective": "equation-1", "temperature": 0.5}).resolved()
    assert config.without_effect() == [
        "temperature has no effect with objective='equation-1'; it needs objective='contrastive'"
    ]
