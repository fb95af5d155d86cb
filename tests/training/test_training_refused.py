"""Data that looks right and is not, and disks that fill up: an error, never a silent model."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import graphsage as gs
from graphsage.errors import BundleError, ConfigError, DataError, GraphError
from graphsage.graph.storage import save_graph
from planted import SMALL, planted_graph, planted_split


@pytest.mark.parametrize("aggregator", ["mean", "gcn", "pool"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_features_are_summed_in_full_precision(aggregator: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(200, (8000, 2), generator=generator)
    features = (900 + 50 * torch.randn(200, 4, generator=generator)).to(dtype)
    graphs = [
        gs.Graph.from_edges(edges, 200, features=x, labels=torch.arange(200) % 2) for x in (features, features.float())
    ]
    half, full = (gs.train(g, aggregator=aggregator, **{**SMALL, "epochs": 1}).embed(g) for g in graphs)
    assert torch.isfinite(half).all()
    torch.testing.assert_close(half, full, atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("indices", lambda a: a.__setitem__(3, 10_000), "stored edge 3 points at node 10000"),
        ("indices", lambda a: a.__setitem__(0, -1), "stored edge 0 points at node -1"),
        ("indptr", lambda a: a.__setitem__(5, 0), "indptr goes backwards at node 4"),
        ("labels", lambda a: a.__setitem__(7, -7), "node 7 has -7"),
        ("features", lambda a: a.__setitem__((slice(None), 2), np.nan), "feature column 2 holds NaN"),
    ],
)
def test_a_damaged_graph_is_refused_before_training(name: str, change, message: str) -> None:
    graph = planted_graph()
    array = getattr(graph, name).numpy().copy()
    change(array)
    with pytest.raises(DataError, match=message):
        gs.train(graph.replace(**{name: torch.from_numpy(array)}), planted_split(graph), **SMALL)


def test_a_loss_that_is_not_a_number_stops_the_run() -> None:
    graph = planted_graph()
    broken = graph.replace(features=torch.full_like(graph.features, torch.nan))
    with pytest.raises(DataError, match="the loss of step 1 is nan"):
        gs.train(broken, planted_split(graph), standardize=False, **SMALL)


@pytest.mark.parametrize("aggregator", ["mean", "pool"])
def test_rows_too_long_for_float32_end_training_and_inference_with_an_error(aggregator: str) -> None:
    """Their squares overflow. The rows would become zero vectors if they were divided by an infinite length."""
    graph = planted_graph()
    split = planted_split(graph)
    huge = graph.replace(features=graph.features * 1e25)
    with pytest.raises(DataError, match="the loss of step 1 is nan: numbers overflowed"):
        gs.train(huge, split, standardize=False, aggregator=aggregator, **SMALL)
    model = gs.train(graph, split, aggregator=aggregator, **{**SMALL, "epochs": 1})
    grown = graph.with_nodes(features=torch.full((1, graph.num_features), 1e30), edges=[[120, 0]])
    for inference in ("exact", "sampled"):
        with pytest.raises(DataError, match="the results of 1 nodes overflowed, first that of node 120"):
            model.embed(grown, [120], inference=inference)


def test_features_beyond_float16_are_refused_before_training() -> None:
    graph = planted_graph()
    features = graph.features.clone()
    features[7, 2] = -1e5
    with pytest.raises(DataError, match="feature column 2 of node 7 is -100000, and float16 holds at most 65504"):
        gs.train(graph.replace(features=features), planted_split(graph), feature_type="float16", **SMALL)


def test_pairs_need_an_edge_between_two_training_nodes() -> None:
    graph = planted_graph()
    loops = gs.Graph.from_edges([[v, v] for v in range(120)], features=graph.features)
    with pytest.raises(DataError, match="no training node has an edge to another node"):
        gs.train(loops, planted_split(graph), task="unsupervised", **SMALL)


def test_a_run_is_not_resumed_on_other_labels_or_features(tmp_path: Path) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    options = {**SMALL, "standardize": False}
    gs.train(graph, split, out=tmp_path, **options)
    for other in (graph.replace(labels=1 - graph.labels), graph.replace(features=graph.features * 2)):
        with pytest.raises(BundleError, match="other data; resume"):
            gs.train(other, split, out=tmp_path, resume=True, **options)


def test_a_half_written_log_line_does_not_stop_a_resume(tmp_path: Path) -> None:
    graph = planted_graph()
    gs.train(graph, planted_split(graph), out=tmp_path, **SMALL)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"epoch": 4, "st')
    gs.train(graph, planted_split(graph), out=tmp_path, resume=True, **{**SMALL, "epochs": 4})
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in records] == [1, 2, 3, 4]


def test_a_full_disk_ends_training_with_one_sentence(tmp_path: Path) -> None:
    """A limit on file size stands in for the disk: both make a write fail halfway."""
    graph = planted_graph()
    save_graph(graph, tmp_path / "graph", {"given": planted_split(graph)})

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    words = ["train", str(tmp_path / "graph"), "--out", str(tmp_path / "run"), "--epochs", "1", "--dim", "8"]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "graphsage", *words], capture_output=True, text=True, preexec_fn=little_room
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "error: cannot write" in done.stderr
    assert not list((tmp_path / "run").glob(".*part*"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 8.5}, "dim must be an integer"),
        ({"dim": None}, "dim must be an integer; got None"),
        ({"dim": True}, "dim must be an integer; got True"),
        ({"sample_sizes": (2.0, 3)}, r"sample_sizes must be a sequence of integers; got \(2.0, 3\)"),
        ({"sample_sizes": 5}, "sample_sizes must be a sequence of integers; got 5"),
        ({"sample_sizes": "25"}, "sample_sizes must be a sequence of integers; got '25'"),
        ({"lr": "x"}, "lr must be a number; got 'x'"),
        ({"dropout": "a"}, "dropout must be a number; got 'a'"),
        ({"aggregator": ["mean"]}, r"aggregator must be a name; got \['mean'\]"),
        ({"task": None}, "task must be a name; got None"),
        ({"bias": "no"}, "bias must be true or false; got 'no'"),
        ({"lr": float("inf")}, "lr must be above 0 and finite"),
        ({"weight_decay": float("nan")}, "weight_decay must be at least 0 and finite"),
        ({"seed": 2**70}, "seed must be below"),
    ],
)
def test_settings_must_be_whole_and_finite(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gs.Config.from_dict(settings)


def test_numbers_of_numpy_become_those_of_python() -> None:
    given = {"dim": np.int64(8), "sample_sizes": np.array([4, 3]), "lr": np.float32(0.5), "bias": np.True_}
    config = gs.Config.from_dict(given)
    assert config == gs.Config(dim=8, sample_sizes=(4, 3), lr=0.5, bias=True)
    assert json.dumps(config.as_dict())


@pytest.mark.parametrize("names", [None, ("one", "other")])
def test_one_class_among_the_training_nodes_is_refused(names: tuple[str, ...] | None) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    labels = torch.where(split.codes == split.codes[split.nodes("train")[0]], 1, graph.labels)
    graph = graph.replace(labels=labels, class_names=names)
    with pytest.raises(DataError, match=f"the graph has one class, {(names or (0, 1))[1]!r}, among the training"):
        gs.train(graph, split, **SMALL)
    with pytest.raises(DataError, match="the graph has no class among the training nodes; two are needed"):
        gs.train(graph.replace(labels=torch.full_like(labels, -1)), split, **SMALL)


def test_devices_without_our_kernels_are_refused() -> None:
    with pytest.raises(ConfigError, match="auto, cpu or cuda"):
        gs.train(planted_graph(), device="meta", **SMALL)


def test_class_numbers_names_and_row_counts_are_checked() -> None:
    with pytest.raises(GraphError, match="class numbers must be below"):
        gs.Graph.from_edges([[0, 1]], labels=[0, 2**30])
    with pytest.raises(GraphError, match="'a' stands there twice"):
        gs.Graph.from_edges([[0, 1]], labels=[0, 1], class_names=["a", "a"])
    with pytest.raises(GraphError, match="labels must have one row for each of the 2 nodes"):
        gs.Graph.from_edges([[0, 2]], features=torch.zeros(2, 1), labels=[0, 1, 0])


def test_splits_take_arrays_and_lists_and_refuse_row_numbers_as_masks() -> None:
    assert gs.Split.by_time(np.array([3, 1, 2])).sizes()["train"] == 2
    assert gs.Split.by_graph([0, 1, 2], val=[1], test=[2]).sizes() == {"train": 1, "val": 1, "test": 1}
    with pytest.raises(DataError, match="are they row numbers"):
        gs.Split.masks([0, 3, 7, 9])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"num_walks": 3},
            "num_walks has no effect with task='supervised'; it needs task='unsupervised' or",
        ),
        ({"negatives_per_pair": True}, "negatives_per_pair has no effect with task='supervised'"),
        (
            {"supervised_weight": 2.0},
            "supervised_weight has no effect with task='supervised'; it needs task='joint'",
        ),
        ({"task": "unsupervised", "head_scale": True}, "head_scale has no effect with task='unsupervised'"),
        ({"hidden_dim": 7}, "hidden_dim has no effect with aggregator='mean'; it needs aggregator='pool'"),
        ({"aggregator": "gcn", "depth": 2}, "depth has no effect with aggregator='gcn'"),
    ],
)
def test_a_setting_without_effect_is_a_warning(settings: dict, sentence: str) -> None:
    graph = planted_graph()
    with pytest.warns(UserWarning, match=sentence):
        gs.train(graph, planted_split(graph), **{**SMALL, "steps": 1, **settings})


def test_settings_with_an_effect_are_no_warning() -> None:
    assert not gs.Config(task="joint", num_walks=3, supervised_weight=2.0, head_scale=True).without_effect()
    assert not gs.Config(aggregator="pool", hidden_dim=7, depth=2).without_effect()


@pytest.mark.parametrize("asked", [{"patience": 2}, {"keep_weights": "best"}])
def test_a_choice_by_validation_without_validation_nodes_is_refused(asked: dict) -> None:
    graph = planted_graph()
    with pytest.raises(ConfigError, match=f"{next(iter(asked))} .*the split has no labeled validation node"):
        gs.train(graph, gs.Split.random(120, (0.8, 0.0, 0.2), 0), **asked, **SMALL)


@pytest.mark.parametrize(
    ("share", "found"), [(0.0, "no labeled validation node"), (0.05, "6 labeled validation nodes")]
)
def test_too_few_validation_nodes_keep_the_last_weights_and_say_so(share: float, found: str) -> None:
    graph, notes = planted_graph(), list[str]()
    split = gs.Split.random(120, (0.8 - share, share, 0.2), 0)
    model = gs.train(graph, split, on_note=notes.append, **SMALL)
    assert [note for note in notes if found in note and "last weights are kept" in note]
    assert model.about["training"]["kept_epoch"] == SMALL["epochs"]
    last = gs.train(graph, split, keep_weights="last", on_note=notes.append, **SMALL)
    assert torch.equal(model.encoder.layer(1).weight.weight, last.encoder.layer(1).weight.weight)


def test_validation_f1_of_zero_is_explained_at_the_third_epoch() -> None:
    """Labels that no training node has are never predicted."""
    graph = planted_graph(multilabel=True)
    split = planted_split(graph)
    labels = graph.labels * (split.codes == 1)[:, None]
    labels[0, 0] = 1
    events: list = []
    options = {**SMALL, "epochs": 5}
    gs.train(graph.replace(labels=labels), split, on_event=events.append, **options)
    hints = {event.epoch: event.hint for event in events if event.hint}
    assert list(hints) == [3]
    assert hints[3].startswith("validation F1 is 0 after 3 epochs")
    with pytest.warns(UserWarning, match="validation F1 is 0 after 3 epochs"):
        gs.train(graph.replace(labels=labels), split, **options)
