"""What all experiments share, where a person or a file is mistaken."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphsage.checksummed_json import write_checksummed
from graphsage.errors import ConfigError, DataError
from graphsage.experiments.data import Source
from graphsage.experiments.profile import FORMS, profile_named
from graphsage.experiments.record import LAYOUT, hardware, machine
from graphsage.experiments.report import read_records
from graphsage.experiments.reproduce import open_session, reproduce, start
from graphsage.experiments.session import Session
from graphsage.training.trials import Result, Runner, Trial, TrialStore


def session(out: Path) -> Session:
    return start((Source("setmm"),), profile_named("quick"), out)


def on(gpu: str, made: Session) -> Session:
    about = {"hardware": {"gpu": gpu, "cores": 1}, "versions": {"torch": "1"}}
    return replace(made, trials=Runner(made.trials.store, lambda trial: {"val": 0.5}, about=about))


def test_a_result_names_the_machines_of_its_own_trials(tmp_path: Path) -> None:
    first, second, third = (Trial(name, {"seed": 0}, "graphsage") for name in ("first", "second", "third"))
    on("old", session(tmp_path)).trials.run([first, second])
    (session(tmp_path).trials.store.folder / "foreign.jsonl").write_text("[1]\n")
    here = on("new", session(tmp_path))
    here.trials.run([second, third])
    here.keep("one", "", {"rows": []})
    here.trials.run([third])
    here.keep("two", "", {"rows": [], "trials_on": ["elsewhere"]})
    told = [json.loads((tmp_path / f"{name}.json").read_text())["trials_on"] for name in ("one", "two")]
    assert told == [["new", "old"], ["elsewhere", "new"]]
    assert json.loads((tmp_path / "one.json").read_text())["time"]["trials"] == 2
    session(tmp_path).keep("three", "", {"rows": []})
    assert json.loads((tmp_path / "three.json").read_text())["trials_on"] == [machine(hardware())]


@pytest.mark.parametrize("layout", [None, LAYOUT - 1, LAYOUT + 1])
def test_a_result_of_another_version_or_damaged_is_named(tmp_path: Path, layout: int | None) -> None:
    write_checksummed(tmp_path / "table1.json", {"profile": "quick", "rows": [], "layout": layout})
    for read in (lambda: session(tmp_path).earlier("table1"), lambda: read_records(tmp_path)):
        with pytest.raises(DataError, match=r"table1\.json is no result that this version of graphsage wrote"):
            read()
    (tmp_path / "table1.json").write_text("{")
    with pytest.raises(DataError, match=r"table1\.json cannot be trusted"):
        read_records(tmp_path)


def test_a_piece_that_the_profile_does_not_have_is_refused(tmp_path: Path) -> None:
    paper = replace(profile_named("quick"), forms=("paper",))
    narrowed = start((Source("setmm"),), paper, tmp_path, only=("reference",))
    with pytest.raises(ConfigError, match="profile quick has only paper"):
        narrowed.wanted(narrowed.profile.forms, FORMS)


@pytest.mark.parametrize("seeds", [0, -2])
def test_there_is_at_least_one_seed(tmp_path: Path, seeds: int) -> None:
    with pytest.raises(ConfigError, match="seeds must be at least 1"):
        start((Source("setmm"),), profile_named("quick"), tmp_path, seeds=seeds)


def test_a_figure_has_every_seed_that_there_is(tmp_path: Path) -> None:
    def evaluate(trial: Trial) -> Result:
        return {"val": 0.0, "test": trial.settings["lr"] + trial.settings["seed"]}

    def with_seeds(count: int) -> Session:
        made = start((Source("setmm"),), profile_named("quick"), tmp_path, seeds=count)
        return replace(made, trials=Runner(TrialStore(tmp_path / "trials"), evaluate))

    low, high = Trial("low", {"lr": 0.1}), Trial("high", {"lr": 0.5})
    with_seeds(3).runs({"low": low})
    found = with_seeds(1).runs({"low": low, "high": high})
    tests = {key: [run["test"] for run in runs] for key, runs in found.items()}
    assert tests == {"low": [0.1, 1.1, 2.1], "high": [0.5]}


@pytest.mark.parametrize("minutes", [-1.0, float("nan"), float("inf")])
def test_the_time_of_a_sitting_is_a_number(tmp_path: Path, minutes: float) -> None:
    with pytest.raises(ConfigError, match="--minutes must be a finite number, 0 or more"):
        start((Source("setmm"),), profile_named("quick"), tmp_path, minutes=minutes)


def test_no_claim_is_judged_in_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no result"):
        reproduce("claims", open_session([], "quick", tmp_path, what="claims"))
    assert not (tmp_path / "claims.json").exists()


def test_what_reads_only_results_needs_no_data(tmp_path: Path) -> None:
    made = {"layout": LAYOUT, "profile": "full", "rows": [], "trials_on": [], "old_protocol": {}}
    write_checksummed(tmp_path / "table1.json", made)
    for what in ("wilcoxon", "claims"):
        reproduce(what, open_session([], "quick", tmp_path, what=what))
    found = json.loads((tmp_path / "wilcoxon.json").read_text())
    assert found["profile"] == "full"  # that of the table it was made of
    assert found["command"].startswith("graphsage reproduce wilcoxon --profile")
    with pytest.raises(ConfigError, match="at least one"):
        open_session([], "quick", tmp_path)


def test_only_selects_cells_or_baselines(tmp_path: Path) -> None:
    def selected(*words: str) -> tuple[int, bool, bool]:
        made = start((Source("setmm"),), profile_named("full"), tmp_path, only=words)
        return len(made.cells()), made.makes("yardsticks"), made.makes("deepwalk")

    assert selected() == (16, True, True)
    assert selected("supervised", "mean") == (2, True, True)
    assert selected("yardsticks") == (0, True, False)
    assert selected("deepwalk") == (0, False, True)
    assert selected("deepwalk", "paper", "gcn") == (2, False, True)
