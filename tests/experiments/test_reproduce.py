"""`graphsage reproduce`: everything, in one command or in several."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from graphsage.errors import ConfigError, DataError
from graphsage.evaluation.f1 import F1, f1_scores
from graphsage.experiments import trial_runners
from graphsage.experiments.data import Source, opened, parse_data
from graphsage.experiments.plots import DRAWN, pictures
from graphsage.experiments.profile import profile_named
from graphsage.experiments.report import markdown, read_records
from graphsage.experiments.reproduce import EXPERIMENTS, names, open_session, reproduce, start
from graphsage.graph.split import Split
from graphsage.graph.storage import save_graph
from graphsage.kernels.threads import cores
from graphsage.training.trials import Unfinished
from planted import planted_graph, planted_split
from reproduction import TINY, read, session


def test_everything_is_made_in_one_go_and_nothing_again(sources: tuple[Source, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    reproduce("all", session(sources, out))
    assert all((out / f"{name}.json").exists() for name in EXPERIMENTS)
    drawn = {name: (out / f"{name}.png").read_bytes() for name in DRAWN}
    assert all(png.startswith(b"\x89PNG") for png in drawn.values())
    page = (out / "report.html").read_text()
    assert page.count("data:image/png;base64,") == len(DRAWN)
    assert "http" not in page
    assert markdown(out, "pictures", "made").count("](pictures/") == len(DRAWN)
    assert pictures(read_records(out)) == drawn
    made: list[str] = []
    reproduce("all", session(sources, out, on_done=lambda trial, *_: made.append(trial.label)))
    assert made == []
    table = read(out, "table1")
    rows = {(row["data"], row["row"], row["task"]): row for row in table["rows"]}
    assert rows["one", "GraphSAGE-mean", "supervised"]["settings"]["lr"] in (0.01, 0.001)
    assert len(rows["one", "GraphSAGE-mean", "supervised"]["swept"]) == 2
    assert rows["ppi", "GraphSAGE-mean", "supervised"]["paper"] == {"supervised": 0.598}
    assert "Appendix D" in rows["ppi", "DeepWalk", "both"]["missing"]
    assert rows["one", "DeepWalk", "both"]["test_micro_f1"]["mean"] > 0
    assert {gain["data"] for gain in table["gains"]} == {"one", "ppi"}
    timed = {row["row"]: row for row in read(out, "figure2a")["rows"]}
    assert timed["DeepWalk"]["embed_microseconds"]["mean"] > timed["GraphSAGE-mean"]["embed_microseconds"]["mean"]
    assert [p["sample_size"] for p in read(out, "figure2b")["points"]] == [2, 4]
    assert len(read(out, "figure3")["lines"]["DeepWalk + features"]) == 2
    cells = [
        *read(out, "figure2b")["points"],
        *read(out, "depth")["points"],
        *read(out, "pooling")["points"],
        *read(out, "figure3")["lines"]["GraphSAGE-mean"],
    ]
    assert all(cell["lr"] in cell["tried"] == [0.01, 0.001] for cell in cells)
    timed_points = [point for point in cells if "timed_on" in point]
    assert {point["timed_on"] for point in timed_points} == {f"{cores()} cores"}
    assert all(point["step_milliseconds"] > 0 for point in timed_points)
    assert len(read(out, "wilcoxon")["rows"]) == 6
    assert all(c["largest_error"] < 1e-6 for c in read(out, "theory")["constructed"])


def without_times(record: Any) -> Any:
    if isinstance(record, dict):
        return {k: without_times(v) for k, v in record.items() if "seconds" not in k}
    return [without_times(v) for v in record] if isinstance(record, list) else record


def test_table_1_twice_gives_identical_numbers(sources: tuple[Source, ...], tmp_path: Path) -> None:
    for out in ("a", "b"):
        reproduce("table1", session(sources[:1], tmp_path / out))
    first, second = (without_times(read(tmp_path / out, "table1")) for out in ("a", "b"))
    assert first == second


def test_pieces_of_table_1_are_put_together(sources: tuple[Source, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    reproduce("table1", session(sources[:1], out, only=("supervised", "mean")))
    first = {(row["row"], row["task"]) for row in read(out, "table1")["rows"] if "aggregator" in row}
    reproduce("table1", session(sources[:1], out, only=("unsupervised", "gcn", "mean")))
    both = {(row["row"], row["task"]) for row in read(out, "table1")["rows"] if "aggregator" in row}
    assert first == {("GraphSAGE-mean", "supervised")}
    assert both - first == {("GraphSAGE-GCN", "unsupervised"), ("GraphSAGE-mean", "unsupervised")}


def test_a_sweep_can_be_narrowed_to_some_rates_and_small_models(sources: tuple[Source, ...], tmp_path: Path) -> None:
    full = start(sources[:1], profile_named("full"), tmp_path, rates=(0.01,), small=True)
    assert full.space("supervised", "pool").grid() == [{"lr": 0.01, "hidden_dim": 512}]
    assert full.space("supervised", "mean").grid() == [{"lr": 0.01}]
    with pytest.raises(ConfigError, match="its rates are 2e-06"):
        full.space("unsupervised", "mean")
    with pytest.raises(ConfigError, match="--rates takes numbers"):
        open_session(["one=x"], "full", tmp_path, rates="fast")


def test_data_words_are_read_and_mistakes_named() -> None:
    assert parse_data(["ppi=a/ppi", "setmm"]) == (Source("ppi", "a/ppi"), Source("setmm"))
    for words, message in (
        (["ppi"], "needs a path"),
        (["a=1", "a=2"], "twice"),
        ([], "at least one"),
        (["=x"], "NAME"),
        (["setmm=x"], "takes no path; give x another name"),
    ):
        with pytest.raises(ConfigError, match=message):
            parse_data(words)
    with pytest.raises(ConfigError, match="quick, full"):
        profile_named("huge")
    with pytest.raises(ConfigError, match="figure2a"):
        names("table9")


def test_a_short_run_does_not_replace_what_a_long_one_left(sources: tuple[Source, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    full = dataclasses.replace(TINY, name="full")
    reproduce("facts", dataclasses.replace(session(sources, out), profile=full))
    before = (out / "facts.json").read_bytes()
    for what in ("facts", "all"):
        with pytest.raises(ConfigError, match=r"facts\.json is of profile full, and this run is of profile tiny"):
            reproduce(what, session(sources, out))
    assert (out / "facts.json").read_bytes() == before
    assert not (out / "table1.json").exists()


def test_data_that_nothing_can_be_learned_from_is_refused(sources: tuple[Source, ...], tmp_path: Path) -> None:
    graph = opened(sources[0]).graph
    split = planted_split(graph)
    save_graph(graph.replace(features=None), tmp_path / "bare", {"given": split})
    with pytest.raises(ConfigError, match="--data bare: there are no features"):
        reproduce("table1", session((Source("bare", str(tmp_path / "bare")),), tmp_path / "out"))
    outward = torch.stack([split.nodes("train")[:3], split.nodes("test")[:3]], dim=1)
    loops = split.nodes("train")[:3, None].expand(3, 2)
    for name, edges in (("alone", outward[:0]), ("apart", outward), ("loops", loops)):
        few = graph.from_edges(edges, graph.num_nodes, features=graph.features, labels=graph.labels)
        save_graph(few, tmp_path / name, {"given": split})
        with pytest.raises(ConfigError, match=f"--data {name}: no edge joins two training nodes"):
            reproduce("table1", session((Source(name, str(tmp_path / name)),), tmp_path / "out"))


def test_a_table_without_models_has_no_picture() -> None:
    assert pictures({"table1": {"rows": [{"data": "one", "task": "both", "row": "Random"}]}}) == {}


def test_rotation_leaves_out_nodes_of_unknown_label(
    sources: tuple[Source, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = opened(sources[0])
    assert whole.graph.labels is not None
    labels = torch.where(torch.arange(whole.graph.num_nodes) % 3 > 0, whole.graph.labels, -1)
    part = dataclasses.replace(whole, graph=whole.graph.replace(labels=labels))
    asked: list[Any] = []

    def noted(truth: Any, answers: Any) -> F1:
        asked.append((truth, answers))
        return f1_scores(truth, answers)

    monkeypatch.setattr(trial_runners, "f1_scores", noted)
    trial_runners.rotation({"seed": 0, "device": "cpu", "num_walks": 2, "passes": 1, "dim": 4}, part)
    assert len(asked) == 3
    for truth, answers in asked:
        assert len(truth) == len(answers) == 16  # 20% of the 80 known ones
        assert min(*truth, *answers) >= 0


def test_without_validation_nodes_30_percent_of_the_test_nodes_validate(tmp_path: Path) -> None:
    graph = planted_graph(100)
    held_out = Split.masks(torch.arange(100) < 50, None, torch.arange(100) >= 50)
    for name, split in (("held out", held_out), ("random", Split.random(100))):
        save_graph(graph, tmp_path / name, {"given": split})
    assert opened(Source("one", str(tmp_path / "held out"))).split.sizes() == {"train": 50, "val": 15, "test": 35}
    assert torch.equal(opened(Source("one", str(tmp_path / "random"))).split.codes, Split.random(100).codes)


def test_training_without_validation_nodes_sees_the_same_training_nodes(sources: tuple[Source, ...]) -> None:
    data = opened(sources[0])
    assert torch.equal(data.unvalidated.nodes("train"), data.split.nodes("train"))
    assert not len(data.unvalidated.nodes("val"))


def test_wilcoxon_needs_table_1(sources: tuple[Source, ...], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="reproduce table1"):
        reproduce("wilcoxon", session(sources, tmp_path / "out"))


def test_the_full_profile_is_the_papers() -> None:
    full = profile_named("full")
    assert full.seeds == 5
    assert full.training["supervised"] == {}
    assert full.depths[1] == (25, 10)
    assert dataclasses.asdict(full)["rates"] is None


def test_several_graphs_alone_are_reproduced_as_far_as_they_go(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DeepWalk's rotation cannot be shown on several graphs; what comes after it is made all the same."""
    from graphsage.experiments import reproduce as module

    monkeypatch.setattr(module, "EXPERIMENTS", ("rotation", "facts"))
    monkeypatch.setattr(module, "write_report", lambda out: out / "report.html")
    written = reproduce("all", session(sources[1:], tmp_path / "out"))
    assert [path.name for path in written] == ["facts.json", "report.html"]
    assert (tmp_path / "out" / "facts.json").exists()
    assert "left out" in capsys.readouterr().err
    with pytest.raises(DataError, match=r"cannot be applied \(ppi: several graphs"):
        reproduce("rotation", session(sources[1:], tmp_path / "out"))


def test_what_deepwalk_takes_part_in_is_made_on_a_single_graph(sources: tuple[Source, ...], tmp_path: Path) -> None:
    both = session(sources[::-1], tmp_path)  # several graphs first
    assert both.single == sources[0]
    assert both.largest == sources[0]
    assert session(sources[1:], tmp_path).single is None
    assert session(sources[1:], tmp_path).largest == sources[1]


def test_rows_of_another_profile_or_of_other_data_are_not_put_together(
    sources: tuple[Source, ...], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    reproduce("table1", session(sources[:1], out, only=("supervised", "mean")))
    other = dataclasses.replace(TINY, name="other")
    reproduce("table1", start(sources[:1], other, out, device="cpu", only=("supervised", "gcn")))
    assert {row["row"] for row in read(out, "table1")["rows"] if "aggregator" in row} == {"GraphSAGE-GCN"}
    graph = planted_graph(100)
    save_graph(graph, tmp_path / "two", {"given": planted_split(graph)})
    changed = (Source("one", str(tmp_path / "two")),)
    reproduce("table1", start(changed, other, out, device="cpu", only=("supervised", "pool")))
    assert {row["row"] for row in read(out, "table1")["rows"] if "aggregator" in row} == {"GraphSAGE-pool"}


def test_a_sitting_that_is_over_says_what_is_left(sources: tuple[Source, ...], tmp_path: Path) -> None:
    with pytest.raises(Unfinished, match="continue"):
        reproduce("table1", session(sources[:1], tmp_path / "out", minutes=0))
    assert not (tmp_path / "out" / "table1.json").exists()


def test_a_sitting_that_is_over_puts_together_what_there_is(sources: tuple[Source, ...], tmp_path: Path) -> None:
    """`all` goes on to the ledger and the report, and a figure has the rates and seeds that were made for it."""
    out = tmp_path / "out"
    with pytest.raises(Unfinished):
        reproduce("all", session(sources[:1], out, minutes=0))
    assert (out / "report.html").exists()
    assert not (out / "figure2b.json").exists()  # not even a part is there
    reproduce("figure2b", session(sources[:1], out, rates=(0.001,), seeds=2))
    (out / "figure2b.json").unlink()
    with pytest.raises(Unfinished, match="2 trials are left"):  # the other rate of both sizes
        reproduce("figure2b", session(sources[:1], out, minutes=0))
    points = read(out, "figure2b")["points"]
    assert [(p["lr"], p["tried"], len(p["test_micro_f1"]["values"])) for p in points] == [(0.001, [0.001], 2)] * 2


def test_putting_together_again_keeps_the_time_that_the_trials_took(
    sources: tuple[Source, ...], tmp_path: Path
) -> None:
    made = session(sources[:1], tmp_path)
    reproduce("pooling", dataclasses.replace(made, began=made.began - 1000))
    reproduce("pooling", session(sources[:1], tmp_path, minutes=0))
    time = read(tmp_path, "pooling")["time"]
    assert (time["trials"], time["sitting_seconds"] >= 1000) == (4, True)


def test_the_ledger_has_the_profile_of_what_it_read(sources: tuple[Source, ...], tmp_path: Path) -> None:
    reproduce("facts", session(sources[:1], tmp_path))
    reproduce("claims", open_session([], "full", tmp_path, what="claims"))
    assert read(tmp_path, "claims")["profile"] == "tiny"
