"""The task links: it learns, its settings have an effect, and what it cannot do is refused."""

import dataclasses

import pytest
import torch

from graphsage.errors import BundleError, ConfigError, DataError
from graphsage.estimator import GraphSageEmbedder
from graphsage.evaluation.link_scores import LinkScores
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import split_links
from graphsage.graph.split import Split
from graphsage.inference.bundle import load_bundle
from graphsage.inference.links import evaluate_links
from graphsage.inference.model import Model
from graphsage.training.config import Config
from graphsage.training.objectives.links import Links
from graphsage.training.space import Choice, Space
from graphsage.training.train import set_up, train
from planted import SMALL, planted_graph, planted_split

TASK = {**SMALL, "task": "links", "device": "cpu"}


def rings(num_nodes: int = 160) -> Graph:
    """Nodes on a circle with their place as features: near ones are linked."""
    angle = torch.arange(num_nodes) * (2 * torch.pi / num_nodes)
    x = torch.stack([angle.cos(), angle.sin(), (3 * angle).cos(), (3 * angle).sin()], dim=1)
    near = torch.stack(
        [torch.arange(num_nodes).repeat(5), torch.cat([torch.arange(num_nodes) + k for k in range(1, 6)])]
    )
    return Graph.from_edges(near.t() % num_nodes, num_nodes, features=x)


@pytest.mark.parametrize("negatives", ["in-batch", "uniform", "degree", "hard"])
def test_it_learns_which_nodes_are_near(negatives: str) -> None:
    graph = rings()
    model = train(graph, **{**TASK, "epochs": 12, "dim": 16, "lr": 0.01}, negatives=negatives, link_negatives=64)
    found = evaluate_links(model, graph, model.run_split())
    assert found["model"].mrr > 0.3
    assert found["model"].mrr > 3 * found["popularity"].mrr
    assert found["model"].auc > 0.9


@pytest.mark.parametrize("decoder", ["dot", "bilinear", "mlp"])
@pytest.mark.parametrize("options", [{}, {"popularity": True}, {"source_encoder": "features", "dropout": 0.2}])
def test_a_model_is_loaded_as_it_was(decoder: str, options: dict, tmp_path) -> None:
    graph = planted_graph()
    model = train(graph, **TASK, decoder=decoder, out=tmp_path / "run", **options)
    loaded = load_bundle(tmp_path / "run")
    assert all(torch.equal(loaded.links.state_dict()[name], value) for name, value in model.links.state_dict().items())
    assert loaded.evaluate() == model.evaluate()
    assert isinstance(model.evaluate(), LinkScores)


def test_new_nodes_are_found_by_their_features() -> None:
    graph = rings()
    split = Split.random(160, (0.8, 0.1, 0.1))
    options = {**TASK, "epochs": 20, "dim": 16, "lr": 0.01, "link_split": "nodes", "source_encoder": "features"}
    model = train(graph, split, **options)
    found = evaluate_links(model, graph, split, "val")
    assert found["model"].hits[10] > 0.6
    assert found["model"].mrr > 2 * found["popularity"].mrr


def test_the_best_epoch_is_kept() -> None:
    scores: list[float] = []
    model = train(
        rings(),
        **{**TASK, "epochs": 6, "lr": 0.03},
        on_event=lambda e: scores.append(e.val_score) if e.val_score else None,
    )
    assert len(scores) == 6
    assert model.about["training"]["val_score"] == max(scores)
    assert model.about["training"]["metric"] == "mrr"


def test_a_run_is_continued_with_equal_bits(tmp_path) -> None:
    graph = planted_graph()
    whole = train(graph, **{**TASK, "epochs": 2}, keep_weights="last")
    train(graph, **{**TASK, "epochs": 1}, keep_weights="last", out=tmp_path / "run")
    again = train(graph, **{**TASK, "epochs": 2}, keep_weights="last", out=tmp_path / "run", resume=True)
    one, two = ({**m.encoder.state_dict(), **m.links.state_dict()} for m in (whole, again))
    assert all(torch.equal(one[name], two[name]) for name in one)


def gathered(graph: Graph, split: Split, **settings: object):
    config = Config.from_dict({name: value for name, value in {**TASK, **settings}.items() if name != "device"})
    run = set_up(graph, split, config.resolved(), torch.device("cpu"), {})
    assert isinstance(run.objective, Links)
    return run, run.objective


@pytest.mark.parametrize("negatives", ["in-batch", "uniform", "degree", "hard"])
def test_no_known_link_is_a_negative(negatives: str) -> None:
    graph = planted_graph()
    run, objective = gathered(graph, Split(torch.zeros(120, dtype=torch.uint8)), negatives=negatives, link_negatives=30)
    known = {(int(a), int(b)) for a, b in run.links.train.known}
    pairs, keys, bits = (tensor[0] for tensor in objective.choose_examples(0))
    u, v = pairs.unbind(1)
    n = objective._negatives(u, bits)
    wrong = objective._wrong(u, v, n)
    candidates = torch.cat([v, n]).tolist()
    for i, source in enumerate(u.tolist()):
        for j, candidate in enumerate(candidates):
            if wrong[i, j]:
                assert candidate != source
                assert (source, candidate) not in known
    assert wrong[:, : len(v)].any() == (negatives == "in-batch")
    assert len(n) == (0 if negatives == "in-batch" else 30)
    assert torch.isfinite(objective.loss(objective.gather((pairs, keys, bits))))


def test_the_asked_link_is_in_no_tree() -> None:
    """The vectors of a link's ends do not change if its edge is removed from the training graph."""
    graph = planted_graph()
    split = Split(torch.zeros(120, dtype=torch.uint8))
    _run, objective = gathered(graph, split, sample_sizes=(40, 40))
    pairs, keys, bits = (tensor[0] for tensor in objective.choose_examples(0))
    examples = pairs[:1], keys[:1], bits
    ((a, b),) = examples[0].tolist()
    lists = objective.data.capped
    assert b in lists.neighbors(a).tolist()
    rows, columns = lists.edge_rows, lists.indices
    keep = ~(((rows == a) & (columns == b)) | ((rows == b) & (columns == a)))
    counts = torch.bincount(rows[keep], minlength=120)
    without = lists.replace(indptr=torch.cat([counts.new_zeros(1), counts.cumsum(0)]), indices=columns[keep])
    z = objective._embed(objective.gather(examples).inputs)
    objective.data = dataclasses.replace(objective.data, capped=without)
    objective.places = type(objective.places).of(without)
    assert torch.equal(objective._embed(objective.gather(examples).inputs), z)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"degree_features": True}, "degree_features"),
        ({"projections": 8}, "projections"),
        ({"max_degree": 20}, "max_degree"),
        ({"form": "paper"}, "form"),
        ({"redraw": False}, "redraw"),
        ({"metric": "accuracy"}, "use one of mrr, hits@10, recall@50"),
        ({"decoder": "cosine"}, "dot, bilinear, mlp"),
        ({"split": "random"}, "holds out links and no nodes"),
        ({"batch_size": 1}, "use a larger batch or negatives='uniform'"),
        ({"batch_size": 1, "negatives": "in-batch"}, "use a larger batch or negatives='uniform'"),
    ],
)
def test_settings_that_would_tell_the_link_are_refused(settings: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        train(planted_graph(), **{**TASK, **settings})


def test_targets_that_are_nobodys_negatives_are_refused() -> None:
    """All links lead to one node: in a batch there is no wrong target."""
    edges = torch.stack([torch.arange(1, 40), torch.zeros(39, dtype=torch.int64)], dim=1)
    graph = Graph.from_edges(edges, 40, features=torch.randn(40, 3), direction="in")
    with pytest.raises(DataError, match="linked to all of the 1 targets; use negatives='uniform'"):
        train(graph, **TASK)
    train(graph, **TASK, negatives="uniform")
    train(graph, **{**TASK, "batch_size": 1}, negatives="uniform")


def test_a_graph_without_features_needs_a_vector_for_each_node() -> None:
    graph = planted_graph().replace(features=None)
    with pytest.raises(DataError, match="identity_dim"):
        train(graph, **TASK)
    assert train(graph, **TASK, identity_dim=4).evaluate().auc > 0.5


def test_a_model_of_links_predicts_no_classes() -> None:
    model: Model = train(planted_graph(), **TASK)
    with pytest.raises(DataError, match="predicts links"):
        model.predict()
    with pytest.raises(ConfigError, match="val and test"):
        model.evaluate(part="train")


@pytest.mark.parametrize("name", ["decoder", "negatives", "source_encoder", "link_split"])
def test_settings_of_links_have_no_effect_elsewhere(name: str) -> None:
    value = {"decoder": "mlp", "negatives": "hard", "source_encoder": "features", "link_split": "time"}[name]
    (sentence,) = Config.from_dict({name: value}).without_effect()
    assert name in sentence
    assert "links" in sentence


def test_the_same_links_are_drawn_again() -> None:
    graph = planted_graph()
    model = train(graph, **TASK)
    one = split_links(graph, "edges", model.run_split(), model.seed)
    assert torch.equal(one.test.pairs, split_links(graph, "edges", model.run_split(), model.seed).test.pairs)
    with pytest.raises(ConfigError, match="has no effect"):
        train(graph, planted_split(graph), **TASK)


def test_a_table_of_pairs_is_learned_and_remembered(tmp_path) -> None:
    """Links between opposite nodes, which are no edges, are learned from features and edges."""
    graph = rings()
    table = tmp_path / "pairs.csv"
    rows = [f"{v},{(v + 80 + k) % 160}" for v in range(160) for k in range(3)]
    table.write_text("\n".join(["source,target", *rows]) + "\n", encoding="utf-8")
    options = {**TASK, "epochs": 15, "dim": 16, "lr": 0.01, "decoder": "bilinear", "popularity": True}
    model = train(graph, **options, pairs=str(table), out=tmp_path / "run")
    found = model.evaluate()
    assert found.mrr > 0.2
    loaded = load_bundle(tmp_path / "run")
    assert loaded.evaluate() == found
    best = model.recommend([0], k=5).rows[0].tolist()
    assert not {80, 81, 82} & set(best)
    assert 0 not in best
    score = model.score([[0, 80]])
    table.write_text(table.read_text("utf-8") + "5,6\n", encoding="utf-8")
    with pytest.raises(DataError, match="changed since the model was trained"):
        loaded.evaluate()
    table.unlink()
    with pytest.raises(DataError, match="is gone"):
        loaded.recommend([0])
    assert score.isfinite().all()


def test_pairs_of_unknown_nodes_are_refused(tmp_path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("source,target\n1,2\n1,999\n", encoding="utf-8")
    with pytest.raises(DataError, match="the graph does not have, such as 999"):
        train(rings(), **TASK, pairs=str(table))
    table.write_text("who,whom\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"the columns source and target .* 'who'"):
        train(rings(), **TASK, pairs=str(table))
    with pytest.raises(DataError, match="nowhere"):
        train(rings(), **TASK, pairs="nowhere.csv")


def test_estimators_and_sweeps_refuse_links() -> None:
    with pytest.raises(ConfigError, match="learn nodes and no links"):
        GraphSageEmbedder(graph=planted_graph(), settings={"task": "links"}).fit(range(120))
    with pytest.raises(ConfigError, match="scores nodes and no links"):
        Space({"task": "links"}, {"lr": Choice((0.1, 0.01))})


def test_a_run_is_not_continued_with_other_pairs(tmp_path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("source,target\n" + "".join(f"{v},{v + 40}\n" for v in range(100)), encoding="utf-8")
    options = {**TASK, "epochs": 1, "pairs": str(table), "out": tmp_path / "run"}
    train(rings(), **options)
    table.write_text("source,target\n" + "".join(f"{v},{v + 41}\n" for v in range(100)), encoding="utf-8")
    with pytest.raises(BundleError, match="other settings"):
        train(rings(), **{**options, "epochs": 2}, resume=True)
