"""The ledger: claims about depth, samples and times."""

from typing import Any

import pytest

from graphsage.experiments import evidence_figures
from graphsage.experiments.evidence import Records, chance_of
from graphsage.experiments.record import MEASURED, spread

EMPTY: dict[str, dict[str, Any] | None] = dict.fromkeys(MEASURED)


def test_depth_samples_noise_and_rotation() -> None:
    points = [{"data": "d", "aggregator": "mean", "k": k, "test_micro_f1": spread([f1]), "step_milliseconds": s,
               "sample_sizes": [10] * k}
              for k, f1, s in ((1, 0.5, 1.0), (2, 0.6, 2.0), (3, 0.61, 40.0))]  # fmt: skip
    sizes = [{"sample_size": s, "test_micro_f1": spread([f])} for s, f in ((5, 0.5), (10, 0.55), (20, 0.56))]
    lines = {"GraphSAGE-pool": [spread([0.6]), spread([0.4])], "GraphSAGE-GCN": [spread([0.6]), spread([0.2])]}
    chance = {"data": "d", "row": "Random", "task": "both", "test_micro_f1": spread([0.2])}
    records = {**EMPTY, "depth": {"points": points}, "figure2b": {"points": sizes}, "table1": {"rows": [chance]},
               "figure3": {"data": {"d": {}}, "lines": lines},
               "rotation": {"rows": [{"test_micro_f1": spread([v])} for v in (0.8, 0.2, 0.7)]}}  # fmt: skip
    assert evidence_figures.second_layer(records).ours.startswith("+20.0%")
    assert evidence_figures.third_layer(records).holds
    assert evidence_figures.third_layer_time(records).ours.startswith("20.0 x")
    for find in (evidence_figures.sample_size, evidence_figures.noise, evidence_figures.rotation):
        assert find(records).holds
    sizes[-1]["test_micro_f1"] = spread([0.7])
    lines["GraphSAGE-pool"][1] = spread([0.21])
    assert evidence_figures.sample_size(records).holds is False
    assert evidence_figures.noise(records).holds is False


def test_larger_samples_that_never_gain_show_no_diminishing_returns() -> None:
    points = [{"sample_size": s, "test_micro_f1": spread([f])} for s, f in ((5, 0.5), (10, 0.49), (20, 0.40))]
    assert evidence_figures.sample_size({**EMPTY, "figure2b": {"points": points}}).holds is False


def depths(factor: float, added: int = 20) -> Records:
    points = [{"data": "d", "aggregator": "mean", "k": k, "step_milliseconds": time,
               "sample_sizes": [25, 10, added][:k]} for k, time in ((2, 3.0), (3, 3.0 * factor))]  # fmt: skip
    return {**EMPTY, "depth": {"points": points}}


@pytest.mark.parametrize(("factor", "holds"), [(7.0, False), (20.0, True)])
def test_a_third_layer_must_cost_what_the_paper_says(factor: float, holds: bool) -> None:
    assert evidence_figures.third_layer_time(depths(factor)).holds is holds


def test_the_time_of_a_third_layer_is_judged_only_where_the_rule_can_be_met() -> None:
    small = evidence_figures.third_layer_time(depths(5.0, added=5))
    assert (small.holds, small.why) == (None, "a third sample of 5 makes the work 6 times as much at most")


def sizes(*points: tuple[int, float, float]) -> Records:
    made = [{"sample_size": size, "test_micro_f1": spread([f1]), "step_milliseconds": time}
            for size, f1, time in points]  # fmt: skip
    return {**EMPTY, "figure2b": {"points": made}}


def test_sub_sampling_must_save_half_of_the_time_for_a_point_of_f1() -> None:
    found = evidence_figures.subsampling(sizes((5, 0.5, 1.0), (10, 0.595, 2.0), (80, 0.6, 8.0)))
    assert (found.holds, found.ours) == (True, "S 10: F1 0.595 in 0.25 of the time of S 80 (0.600)")
    assert evidence_figures.subsampling(sizes((5, 0.5, 1.0), (10, 0.55, 2.0), (80, 0.6, 8.0))).holds is False
    assert evidence_figures.subsampling(sizes((5, 0.5, 1.0), (10, 0.6, 5.0), (80, 0.6, 8.0))).holds is False


@pytest.mark.parametrize(("mean", "holds"), [
    ([0.72, 0.74, 0.73], False),  # three points, and the seeds never meet
    ([0.60, 0.80, 0.76], True),  # as far apart, but so are the seeds
    ([0.725], False),
    ([0.705], True),
])  # fmt: skip
def test_pooling_differs_where_the_seeds_do_not_explain_it(mean: list[float], holds: bool) -> None:
    most = [0.69, 0.71, 0.70] if len(mean) > 1 else [0.70]
    points = [{"data": "d", "aggregator": name, "test_micro_f1": spread(values)}
              for name, values in (("pool", most), ("meanpool", mean))]  # fmt: skip
    found = evidence_figures.pooling({**EMPTY, "pooling": {"points": points}})
    assert found.holds is holds
    assert found.why == "" if holds else found.why.startswith("they differ on d")


@pytest.mark.parametrize(("pool", "holds", "why"), [
    ([0.70, 0.71, 0.69], True, ""),
    ([0.70, 0.55, 0.63], False, "no more than mean (p = "),
    ([0.50, 0.51, 0.49], False, "mean explains more"),
    ([0.60, 0.61, 0.59], False, "no more than mean (p = 1.00)"),
    ([0.62], True, ""),  # one seed tells no more than the order
])  # fmt: skip
def test_pool_must_learn_more_than_the_seeds_explain(pool: list[float], holds: bool, why: str) -> None:
    others = {"mean": [0.60, 0.61, 0.59][: len(pool)], "gcn": [0.2, 0.3, 0.2][: len(pool)]}
    rows = [{"aggregator": name, "r2_new_graphs": spread(values)} for name, values in {"pool": pool, **others}.items()]
    found = evidence_figures.learned({**EMPTY, "theory": {"learned": rows}})
    assert found.holds is holds
    assert found.why.startswith(why)


def test_equal_scores_differ_by_nothing_and_one_seed_tells_nothing() -> None:
    assert chance_of([0.5, 0.5], [0.5, 0.5]) == 1.0
    assert chance_of([0.5], [0.5, 0.6]) is None
    assert chance_of([0.1, 0.2], [0.8, 0.9]) == pytest.approx(0.0101, abs=1e-4)
