"""DeepWalk's sweep: chosen on validation, and each trial made once whoever asks for it."""

import dataclasses
from pathlib import Path

import pytest

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments.data import Source
from graphsage.experiments.figure3 import walk_lines
from graphsage.experiments.reproduce import start
from graphsage.experiments.rows import walk_row
from graphsage.experiments.session import Session
from graphsage.experiments.walks import WALKS, chosen_walks, first_walks, walked
from graphsage.training.trials import Result, Trial, Unfinished
from reproduction import TINY, session


def test_deepwalks_variant_is_chosen_on_validation_not_on_test(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(val: float) -> dict[str, float]:
        return {"val": val, "test": 1 - val, "test_macro": 1 - val, "seconds": 1.0}

    found = {f"{name} {c}": score(val) for name in WALKS for c, val in (("trained", 0.2), ("all", 0.9))}
    made = session(sources[:1], tmp_path)
    monkeypatch.setattr(made.trials, "evaluate", lambda trial: {"rows": found, **score(0.5)})
    made.trials.run(first_walks(made, sources[0]))
    rows = [walk_row(made, sources[0], name) for name in WALKS]
    assert [row and row["settings"]["contexts"] for row in rows] == ["all", "all"]


TWO_RATES = dataclasses.replace(TINY, seeds=2, noise_levels=(0.0, 1.0), deepwalk_rates=(0.2, 0.8))


def made_walks(trial: Trial) -> Result:
    """A DeepWalk whose high rate is best on true features, whose low one with noise; test scores say otherwise."""

    def score(wanted: bool, contexts: str) -> dict[str, float]:
        val = 0.5 * wanted + (0.1 if contexts == "all" else 0.0)
        return {"val": val, "test": 1 - val}

    high = trial.settings["lr"] == 0.8
    rows = {f"{name} {c}": score(high, c) for name in WALKS for c in CONTEXTS}
    if 1.0 in trial.settings["noises"]:
        rows |= {f"DeepWalk + features {c} noise 1.0": score(not high, c) for c in CONTEXTS}
    return {"rows": rows, "seconds": 1.0}


def test_deepwalks_settings_in_figure_3_are_chosen_on_validation_at_every_level_of_noise(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = start(sources[:1], TWO_RATES, tmp_path, device="cpu")
    monkeypatch.setattr(made.trials, "evaluate", made_walks)
    chosen = {name: [(cell["lr"], cell["contexts"], cell["values"]) for cell in line]
              for name, line in walk_lines(made).items()}  # fmt: skip
    high, low = (0.8, "all", [0.4, 0.4]), (0.2, "all", [0.4, 0.4])
    assert chosen == {"DeepWalk": [high, high], "DeepWalk + features": [high, low]}


def test_deepwalks_trials_serve_every_result_that_asks_for_no_more_than_they_hold(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of the data sets is Figure 3's depends on those given: what was made without noise still counts."""
    true_features = [(name, 0.0) for name in WALKS]
    single, several = sources

    def opened_with(*given: Source, minutes: float | None = None) -> Session:
        made = start(given, TWO_RATES, tmp_path, device="cpu", minutes=minutes)
        monkeypatch.setattr(made.trials, "evaluate", made_walks)
        return made

    among = opened_with(several, single)  # Figure 3 would be made of the first
    among.trials.run(first_walks(among, single))
    among.trials.run(chosen_walks(among, single, true_features))
    alone = opened_with(single)
    alone.trials.run([*first_walks(alone, single), *chosen_walks(alone, single, true_features)])
    assert (among.trials.made, alone.trials.made) == (3, 0)

    with pytest.raises(Unfinished):
        walk_lines(opened_with(single, minutes=0))  # there is none with noise
    found = walked(opened_with(single), single, "DeepWalk")
    assert found is not None
    assert (found.chosen["lr"], list(found.runs), len(found.points)) == (0.8, [0, 1], 4)


def test_a_piece_without_deepwalk_makes_none_for_figure_3_and_keeps_what_is_there(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = start(sources[:1], TWO_RATES, tmp_path, device="cpu")
    monkeypatch.setattr(made.trials, "evaluate", made_walks)
    without = dataclasses.replace(made, walks=False)
    assert walk_lines(without) == {}
    assert made.trials.made == 0
    assert walk_lines(made) == walk_lines(without) != {}
