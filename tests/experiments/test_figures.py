"""Figure 2A: times of several machines side by side, and the claims of the ledger that rest on them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from graphsage.experiments import claims, figures
from graphsage.experiments.claims import Records
from graphsage.experiments.plots import pictures
from graphsage.experiments.record import by_machine, spread
from graphsage.experiments.report import sections
from graphsage.experiments.session import Session
from graphsage.kernels.threads import cores
from graphsage.training.trials import Unfinished
from reproduction import read, session, two_sources

Row = dict[str, Any]


def timed(name: str, step: float, pass_seconds: float, factor: float | None = None) -> Row:
    """DeepWalk needs 400 microseconds for a node; the others less by a factor."""
    row: Row = {
        "row": name,
        "pass_seconds": spread([pass_seconds]),
        "embed_microseconds": spread([400 / (factor or 1)]),
    }
    if factor is not None:
        row |= {"supervised_step_milliseconds": spread([step]), "deepwalk_exact_factor": 3 * factor}
    return row


def on(rows: list[Row], *elsewhere: list[Row]) -> Records:
    others = [{"device": f"machine {number}", "rows": those} for number, those in enumerate(elsewhere, 2)]
    return {"figure2a": {"device": "machine 1", "rows": rows, "elsewhere": others}}


FAST = [timed("GraphSAGE-pool", 10, 90, 400), timed("GraphSAGE-LSTM", 20, 360, 40), timed("DeepWalk", 0, 10)]
LONG = [FAST[0], timed("GraphSAGE-LSTM", 120, 900, 40), FAST[2]]
SLOW = [timed("GraphSAGE-pool", 10, 40, 40), timed("DeepWalk", 0, 10)]


def test_times_are_compared_as_the_paper_does() -> None:
    assert claims.lstm_slower(on(FAST)).ours == "2.0 x (LSTM 2.0 x; 20 and 10 ms)"
    assert claims.lstm_slowest(on(FAST)).holds
    told = "126.5 x (pool 400.0 x, LSTM 40.0 x; over exact inference pool 1200 x, LSTM 120 x)"
    assert claims.deepwalk_inference(on(FAST)).ours == told
    assert claims.deepwalk_inference(on(FAST)).holds
    assert claims.deepwalk_training(on(FAST)).ours.startswith("3.6 x")  # five passes of 10 s, and one of 180
    assert claims.deepwalk_training(on(FAST)).holds
    assert claims.deepwalk_training(on([FAST[0], timed("GraphSAGE-LSTM", 1, 9e4, 40), FAST[2]])).why.endswith("10.0 x")
    assert claims.lstm_slowest(on(LONG)).why == "the slowest takes 12 times as long as the fastest"
    assert claims.deepwalk_inference(on(SLOW)).holds is False
    assert claims.deepwalk_training(on(SLOW)).holds is False
    assert claims.deepwalk_inference(on(FAST[:2])).pending


def test_a_difference_of_times_that_the_seeds_explain_does_not_count() -> None:
    wild = {**FAST[1], "supervised_step_milliseconds": spread([1, 20, 300])}
    assert claims.lstm_slower(on([FAST[0] | {"supervised_step_milliseconds": spread([9, 10, 11])}, wild])).why == (
        "the difference is not significant"
    )


def test_times_are_medians_and_few_seeds_are_told() -> None:
    """One slow run among three is an accident of the machine."""
    slow = {**FAST[1], "supervised_step_milliseconds": spread([20, 500, 21]), "pass_seconds": spread([360, 361, 9000])}
    records = on([FAST[0], slow, FAST[2]])
    assert claims.lstm_slower(records).ours.startswith("2.1 x (LSTM 2.1 x; 21 and 10 ms")
    assert claims.deepwalk_training(records).ours.startswith("3.6 x")
    told = claims.points_in_part("figure2a", records["figure2a"])
    assert told == ["figure2a (2 of 3 points with fewer than 3 seeds)"]
    assert claims.points_in_part("figure2a", on(FAST)["figure2a"]) == []


def test_tables_pictures_and_factors_are_of_medians() -> None:
    names = ("pass_seconds", "embed_microseconds", "exact_embed_microseconds", "supervised_step_milliseconds")

    def rows(odd: float) -> list[Row]:
        runs = {
            name: [dict.fromkeys(names, value) for value in (10.0 * factor, odd, 60.0 * factor)]
            for name, factor in (("GraphSAGE-pool", 1), ("DeepWalk", 10))
        }
        runs["DeepWalk"][1] = dict.fromkeys(names, 200.0)
        return figures.compared(runs)

    usual, late = rows(20.0), rows(21.0)
    assert (usual[0]["deepwalk_inference_factor"], usual[0]["deepwalk_exact_factor"]) == (10.0, 10.0)
    about = {
        **{"data": {"d": {}}, "device": "here", "timed_nodes": 1, "unseen_nodes": 1, "profile": "full"},
        **{"time": {"trials": 0, "trial_seconds": 0}, "old_protocol": {}, "trials_on": []},
    }
    slow = [{**row, **{name: spread([*row[name]["values"][:2], 3000.0]) for name in names}} for row in usual]
    shown = [sections({"figure2a": {**about, "rows": each}})[0] for each in (usual, slow, late)]
    assert shown[0].tables == shown[1].tables != shown[2].tables
    assert "medians over the seeds (here: 3 seeds)" in shown[0].text
    drawn = [pictures({"figure2a": {**about, "rows": each}})["figure2a"] for each in (usual, slow, late)]
    assert drawn[0] == drawn[1] != drawn[2]
    old = {**about, "rows": usual, "old_protocol": {"timed deepwalk": 5}}
    assert pictures({"figure2a": old})["figure2a"] != drawn[0]  # the picture says so


def test_a_claim_about_times_holds_where_it_holds_on_every_machine() -> None:
    both = claims.deepwalk_inference(on(FAST, SLOW))
    assert both.holds is False
    assert both.ours.startswith("126.5 x on machine 1, 40.0 x on machine 2 (machine 1: pool 400.0 x")
    assert both.why == "on machine 2: 40.0 x is below 50.0 x"
    assert claims.deepwalk_inference(on(FAST, FAST)).holds


def moved(here: Session, machine: str = "another machine") -> Session:
    """The same folder on another computer."""
    elsewhere: type[Session] = type("Elsewhere", (Session,), {"machine": machine})
    return elsewhere(**vars(here))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timed")
    here = session(two_sources(folder)[:1], folder / "out")
    figures.figure2a(moved(here))
    figures.figure2a(here)
    return folder / "out"


def test_times_of_two_machines_stand_beside_each_other(out: Path) -> None:
    record = read(out, "figure2a")
    names = [row["row"] for row in record["rows"]]
    assert names[-1] == "DeepWalk"
    assert len(names) == 5
    (other,) = record["elsewhere"]
    assert other["device"] == "another machine"
    assert [row["row"] for row in other["rows"]] == names
    assert other["rows"][0]["embed_microseconds"] != record["rows"][0]["embed_microseconds"]
    assert other["made_with"] == [f"{cores()} cores, torch {torch.__version__}"]
    section, _ = sections({"figure2a": record})
    assert [row[0] for row in section.tables[0].rows] == [record["device"]] * 5 + ["another machine"] * 5
    assert f"another machine: {cores()} cores, torch {torch.__version__}, 1 seed)" in section.text
    alone = pictures({"figure2a": {**record, "elsewhere": []}})["figure2a"]
    assert pictures({"figure2a": record})["figure2a"] != alone


def test_a_machine_without_time_puts_together_what_others_have_timed(out: Path, tmp_path: Path) -> None:
    sources = two_sources(tmp_path)[:1]
    begun = moved(session(sources, out), "a third machine")
    begun.time([figures.methods(begun, sources[0], begun.machine)["GraphSAGE-GCN"].with_settings(seed=0)])
    third = moved(session(sources, out, minutes=0), "a third machine")
    figures.figure2a(third)
    assert third.left
    record = read(out, "figure2a")
    assert set(by_machine(record)) == {"another machine", f"{cores()} cores"}
    assert record["time"]["trials"] == 10  # and not the one that the third machine has
    with pytest.raises(Unfinished):
        figures.figure2a(moved(session(two_sources(tmp_path / "new")[:1], tmp_path / "nothing", minutes=0)))


def test_steps_are_timed_here_and_else_all_taken_from_one_other_machine(tmp_path: Path) -> None:
    sources, out = two_sources(tmp_path)[:1], tmp_path / "out"
    figures.figure2b(moved(session(sources, out)))

    def timed_on(here: Session) -> set[str]:
        figures.figure2b(here)
        return {point["timed_on"] for point in read(out, "figure2b")["points"]}

    assert timed_on(session(sources, out, minutes=0)) == {"another machine"}
    assert timed_on(session(sources, out)) == {f"{cores()} cores"}
    third = moved(session(sources, out, minutes=0), "a third machine")
    assert timed_on(third) == {f"{cores()} cores"}
    path = out / "trials" / "tiny" / "figure2b.jsonl"
    kept = [
        line
        for line in path.read_text().splitlines(keepends=True)
        if "time S 4" not in line or "another machine" in line
    ]
    path.write_text("".join(kept))
    third = moved(session(sources, out, minutes=0), "a third machine")
    assert timed_on(third) == {"another machine"}
