"""The ledger: verdicts follow from the records by their rules."""

from typing import Any

import pytest

from graphsage.experiments import claims
from graphsage.experiments.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    PENDING,
    UNTESTED,
    Records,
    chance_of,
    check,
    compared,
    judged,
)
from graphsage.experiments.paper import NAMES, ROWS, SETTINGS, published
from graphsage.experiments.record import MEASURED, spread
from graphsage.experiments.report import claims as claims_section
from graphsage.experiments.table1 import rows_in_part

EMPTY: dict[str, dict[str, Any] | None] = dict.fromkeys(MEASURED)


def paper_rows() -> list[dict[str, Any]]:
    """The paper's own Table 1 in the form of our records."""
    short = {name: key for key, name in NAMES.items()}
    rows = []
    for data, task in SETTINGS:
        for name in ROWS:
            score = published(data, task, name)
            if score is not None:
                extra = {"form": "paper", "aggregator": short[name]} if name in short else {}
                scores = {f"{part}_f1": spread([score]) for part in ("val_micro", "test_micro", "test_macro")}
                rows.append({"data": data, "task": task, "row": name, **scores, **extra})
    return rows


PAPER: dict[str, dict[str, Any] | None] = {
    **EMPTY,
    "table1": {"rows": paper_rows()},
    "wilcoxon": {"rows": compared(paper_rows(), "paper")},
}


def test_nothing_is_judged_without_its_record() -> None:
    for claim in CLAIMS:
        row = judged(claim, EMPTY)
        assert row["verdict"] in (UNTESTED, PENDING), claim.name
        assert row["why"]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("gain over features", "+51.3% on average"),
        ("gain over GCN", "+7.4% on average"),
        ("gain over DeepWalk + features, unsupervised", "+21.5% on average (citation unsupervised +13.8%, reddit"),
        ("gain over DeepWalk + features, supervised", "+28.4% on average (citation supervised +19.7%, reddit"),
        ("unsupervised close to supervised", "0.92 on average"),
        ("LSTM and pool are best", "5 of 6"),
        ("gains over GCN are significant", "p=0.02"),
        ("LSTM and pool do not differ", "T=10, p=0.46"),
        ("LSTM and pool over mean", "lstm: T=1.5, p=0.03, +0.0"),
        ("LSTM and pool on PPI", "GCN 0.500, mean 0.598, LSTM 0.612, pool 0.600"),
        ("outperforms the baselines", "6 of 6"),
        ("same trends for macro F1", "1.00"),
    ],
)
def test_fed_with_the_papers_own_table_its_claims_hold(name: str, ours: str) -> None:
    claim = next(claim for claim in CLAIMS if claim.name == name)
    row = judged(claim, PAPER)
    assert row["verdict"] == HOLDS
    assert ours in row["ours"]


def test_a_baseline_that_a_data_set_was_not_compared_with_is_named() -> None:
    left = [row for row in paper_rows() if (row["data"], row["row"]) not in (("reddit", "DeepWalk"), ("ppi", "Random"))]
    refused = {"data": "ppi", "task": "both", "missing": "several graphs"}
    left += [{**refused, "row": "DeepWalk"}, {**refused, "row": "DeepWalk + features"}]
    ours = claims.beats_baselines({**EMPTY, "table1": {"rows": left}}).ours
    assert "reddit: without DeepWalk (not made)" in ours
    assert "ppi: without Random and DeepWalk and DeepWalk + features (not made or several graphs)" in ours
    rows = [row for row in left if row["data"] == "citation" or row["row"].startswith("DeepWalk")]
    rows += [row for row in paper_rows() if row["data"] == "ppi"]
    ours = claims.beats_baselines({**EMPTY, "table1": {"rows": rows}}).ours
    assert ours == "in 4 of 4 settings; ppi: without DeepWalk and DeepWalk + features (several graphs)"


def test_a_claim_that_the_numbers_contradict_fails_and_says_why() -> None:
    rows = [{**row, "test_micro_f1": spread([0.5])} if row["row"] == "GraphSAGE-pool" else row for row in paper_rows()]
    records = {**EMPTY, "table1": {"rows": rows}}
    found = {claim.name: judged(claim, records) for claim in CLAIMS}
    assert found["gain over GCN"]["verdict"] == FAILS
    assert "below +3.7%" in found["gain over GCN"]["why"]
    assert found["outperforms the baselines"]["verdict"] == FAILS
    assert "GraphSAGE-pool 0.500" in found["outperforms the baselines"]["why"]


def test_facts_are_compared_where_their_data_is() -> None:
    rows = [
        {"data": "setmm", "edges_back": 0.9, "nodes_without_features": 0.0},
        {"data": "ppi", "edges_back": 0.0, "nodes_without_features": 0.423},
    ]
    records = {**EMPTY, "facts": {"rows": rows}}
    stand_in = claims.edges_back(records)
    assert (stand_in.ours, stand_in.holds) == ("90% on the stand-in", None)
    for share, holds in ((0.94, True), (0.9, False)):
        own = {**EMPTY, "facts": {"rows": [{"data": "citation", "edges_back": share}]}}
        assert claims.edges_back(own).holds is holds
    assert claims.empty_proteins(records).holds
    assert claims.reddit_edges_back(records).holds is None


def test_the_signed_rank_test_returns_the_published_pairs() -> None:
    assert all((row["t"], row["p"]) == (row["paper_t"], row["paper_p"]) for row in check())


def test_too_few_settings_prove_neither_a_difference_nor_its_absence() -> None:
    """Over three settings p is above 0.05 even where one method is always better."""
    few = [row for row in paper_rows() if row["data"] == "citation"]
    records = {**EMPTY, "wilcoxon": {"rows": compared(few, "paper")}}
    assert claims.lstm_like_pool(records).holds is None
    assert claims.significant_over_gcn(records).holds is None
    assert "settings" in claims.lstm_like_pool(records).why


def test_noise_is_not_judged_without_the_random_classifier_of_its_data() -> None:
    lines = {"GraphSAGE-pool": [spread([0.4])], "GraphSAGE-GCN": [spread([0.2])]}
    other = {"data": "e", "row": "Random", "task": "both", "test_micro_f1": spread([0.2])}
    records = {**EMPTY, "figure3": {"data": {"d": {}}, "lines": lines}, "table1": {"rows": [other]}}
    assert claims.noise(records).pending


def test_facts_that_were_not_made_are_not_said_to_be_out_of_reach() -> None:
    for find in (claims.edges_back, claims.reddit_edges_back, claims.empty_proteins):
        assert find(EMPTY).pending
        assert not find({**EMPTY, "facts": {"rows": []}}).pending


def test_a_row_names_the_profiles_it_was_judged_by_and_the_report_marks_the_quick_one() -> None:
    facts = {"profile": "quick", "rows": [{"data": "ppi", "nodes_without_features": 0.42}]}
    turned = {"profile": "quick", "rows": [{"test_micro_f1": spread([v])} for v in (0.8, 0.2, 0.7)]}
    records = {**PAPER, "table1": {"profile": "full", "rows": paper_rows()}, "facts": facts, "rotation": turned}
    named = {claim.name: judged(claim, records) for claim in CLAIMS}
    assert named["proteins without features"]["profiles"] == {"facts": "quick"}
    assert named["gain over GCN"]["profiles"] == {"table1": "full"}
    shown = {row[0]: row[3] for row in claims_section({"rows": list(named.values())}).tables[0].rows}
    assert shown["✓ rotation"].endswith("aligned 0.700 (quick)")
    assert shown["✓ proteins without features"] == "42.0%"  # nothing was trained for it
    assert "quick" not in shown["✓ gain over GCN"]


def test_rows_that_were_made_in_part_are_named_where_they_judge() -> None:
    rows = [{**row, "tried": {"points": 6, "of": 6}, "seeds": [0, 1]} for row in paper_rows() if "form" in row]
    short = next(
        row for row in rows if (row["data"], row["task"], row["row"]) == ("ppi", "unsupervised", "GraphSAGE-pool")
    )
    short |= {"tried": {"points": 2, "of": 12}, "seeds": [0]}
    records = {**PAPER, "table1": {"profile": "full", "rows": [*rows, *(r for r in paper_rows() if "form" not in r)]}}
    named = {claim.name: judged(claim, records) for claim in CLAIMS}
    told = ["ppi unsupervised GraphSAGE-pool (2 of 12 points, 1 of 2 seeds)"]
    assert named["gain over GCN"]["in_part"] == named["LSTM and pool do not differ"]["in_part"] == told
    assert named["gain over features"]["in_part"] == named["rotation"]["in_part"] == []
    section = claims_section({"rows": list(named.values())})
    assert section.text.endswith(f"or more seeds: {told[0]}.")
    assert next(row[3] for row in section.tables[0].rows if "gain over GCN" in row[0]).endswith("(in part)")


@pytest.mark.parametrize(("pool", "holds"), [(0.3001, False), (0.32, True)])
def test_on_noise_pool_must_be_a_point_above_gcn(pool: float, holds: bool) -> None:
    lines = {"GraphSAGE-pool": [spread([pool])], "GraphSAGE-GCN": [spread([0.3])]}
    table = {"rows": [{"data": "d", "row": "Random", "test_micro_f1": spread([0.1])}]}
    figure = {"data": {"d": {}}, "settings": {}, "lines": lines}
    assert claims.noise({**EMPTY, "table1": table, "figure3": figure}).holds is holds


def test_a_claim_names_figures_whose_learning_rates_were_not_all_tried_whether_it_holds_or_not() -> None:
    rate: dict[str, Any] = {"lr": 0.01, "tried": [0.01], "of": 3}
    points = [
        {
            "data": "d",
            "aggregator": "pool",
            "k": k,
            "test_micro_f1": spread([f1]),
            "step_milliseconds": 1.0,
            "sample_sizes": [25, 10, 10][:k],
            **rate,
        }
        for k, f1 in ((1, 0.5), (2, 0.6), (3, 0.1))
    ]
    pairs = [
        {"data": "d", "aggregator": name, "test_micro_f1": spread([f1]), **rate, "tried": [0.01, 0.001, 0.0001]}
        for name, f1 in (("pool", 0.5), ("meanpool", 0.6))
    ]
    records = {**EMPTY, "depth": {"profile": "full", "points": points}, "pooling": {"profile": "full", "points": pairs}}
    named = {claim.name: judged(claim, records) for claim in CLAIMS}
    told = ["depth (3 of 3 points with fewer than 3 learning rates)"]
    assert (named["K = 2 over K = 1"]["verdict"], named["K = 3 over K = 2"]["verdict"]) == (HOLDS, FAILS)
    assert named["K = 2 over K = 1"]["in_part"] == named["K = 3 over K = 2"]["in_part"] == told
    assert named["K = 3 over K = 2"]["why"].startswith("-83.3% is outside of -2% to +5%")
    assert named["max and mean pooling"]["in_part"] == []
    assert named["max and mean pooling"]["why"] == "they differ on d by 2 points"


def test_baselines_that_were_swept_in_part_are_named_as_well() -> None:
    rows = [
        row | ({"tried": {"points": 2, "of": 6}, "seeds": [0]} if row["row"] == "DeepWalk" else {})
        for row in paper_rows()
    ]
    short = rows_in_part({"rows": rows}, ("supervised",), ROWS)
    assert short
    assert all("DeepWalk (2 of 6 points" in told for told in short)
    assert rows_in_part({"rows": rows}, (), ROWS) == []


def test_a_claim_names_only_rows_that_judge_it_and_figures_with_few_seeds() -> None:
    rows = [{**row, "tried": {"points": 6, "of": 6}, "seeds": [0]} for row in paper_rows() if "form" in row]
    short = next(row for row in rows if (row["task"], row["row"]) == ("unsupervised", "GraphSAGE-LSTM"))
    short["tried"] = {"points": 2, "of": 12}
    line = [spread([0.3, 0.4]), spread([0.3])]
    figure = {"profile": "full", "data": {"d": {}}, "lines": {"GraphSAGE-pool": line, "GraphSAGE-GCN": line}}
    records = {**PAPER, "table1": {"profile": "full", "rows": rows}, "figure3": figure}
    named = {claim.name: judged(claim, records)["in_part"] for claim in CLAIMS}
    assert named["gain over GCN"] == []
    assert len(named["LSTM and pool do not differ"]) == 1
    assert named["random features"] == ["figure3 (2 of 4 points with fewer than 2 seeds)"]


def test_what_fails_with_short_unsupervised_training_says_how_short() -> None:
    rows = [
        {**row, "steps": 4000, "test_micro_f1": spread([0.1])} if row["task"] == "unsupervised" else row
        for row in paper_rows()
    ]
    claim = next(claim for claim in CLAIMS if claim.name == "unsupervised close to supervised")
    row = judged(claim, {**EMPTY, "table1": {"profile": "full", "rows": rows}})
    assert (row["verdict"], row["why"].endswith("unsupervised models had 4,000 steps")) == (FAILS, True)


def test_the_gain_over_features_is_that_of_the_best_on_validation() -> None:
    rows = [{**row, "val_micro_f1": spread([0.99])} if row["row"] == "GraphSAGE-GCN" else row for row in paper_rows()]
    gcn = claims.gain_over_features({**EMPTY, "table1": {"rows": rows}}).ours
    assert gcn.startswith("+37.2% on average (citation supervised +34.3%, reddit supervised +59.0%")


def test_a_claim_that_fails_says_why() -> None:
    with pytest.raises(AssertionError, match="nothing says why"):
        claims.Verdict("89%", False)
    far = {"rows": [{"data": "citation", "edges_back": 0.89}, {"data": "ppi", "nodes_without_features": 0.5}]}
    assert claims.edges_back({**EMPTY, "facts": far}).why == "more than 5 points from 96%"
    assert claims.empty_proteins({**EMPTY, "facts": far}).why == "more than 2 points from 42%"


def both_forms(pool: float, *, data: str | None = None) -> dict[str, dict[str, Any] | None]:
    """The paper's own table in the paper's form, and in the reference form (of one data set) with another pool."""
    other = [
        {**row, "form": "reference"} for row in paper_rows() if "form" in row and row["data"] == (data or row["data"])
    ]
    for row in other:
        if row["row"] == "GraphSAGE-pool":
            row["test_micro_f1"] = spread([pool])
    rows = [*paper_rows(), *other]
    tests = [*compared(rows, "paper"), *compared(rows, "reference")]
    return {**EMPTY, "table1": {"profile": "full", "rows": rows}, "wilcoxon": {"profile": "full", "rows": tests}}


def turned(records: dict[str, dict[str, Any] | None], verdict: str) -> dict[str, str]:
    """Claims of this verdict that the reference form decides otherwise."""
    rows = [judged(claim, records) for claim in CLAIMS]
    return {row["claim"]: row["reference_form"] for row in rows if row["reference_form"] and row["verdict"] == verdict}


def test_it_is_told_where_the_reference_form_decides_otherwise() -> None:
    lost = both_forms(0.1)
    assert turned(lost, HOLDS)["gain over GCN"].startswith("-8")
    assert "K = 2 over K = 1" not in turned(lost, HOLDS)
    section = claims_section({"rows": [judged(claim, lost) for claim in CLAIMS]})
    (told,) = [row[3] for row in section.tables[0].rows if row[0] == "✓ gain over GCN"]
    assert "; in the reference form it fails: -8" in told
    assert "gain over GCN" in turned({**lost, "wilcoxon": None}, HOLDS)
    assert turned(both_forms(0.1, data="ppi"), HOLDS) == {}  # one data set says nothing about the same settings
    assert turned(PAPER, HOLDS) == {}


def test_it_is_told_where_the_reference_form_alone_holds() -> None:
    records = both_forms(0.9)
    table = records["table1"]
    assert table is not None
    for row in table["rows"]:
        if row.get("form") == "paper" and row["row"] == "GraphSAGE-pool":
            row["test_micro_f1"] = spread([0.1])
    assert turned(records, FAILS)["gain over GCN"].startswith("+")


def of_test(p: float, difference: float) -> dict[str, dict[str, Any] | None]:
    pairs = [(a, "gcn") for a in ("mean", "lstm", "pool")] + [("lstm", "pool")]
    rows = [
        {"a": a, "b": b, "form": "paper", "t": 1.0, "p": p, "mean_difference": difference, "settings": [""] * 6}
        for a, b in pairs
    ]
    return {**EMPTY, "wilcoxon": {"rows": rows}}


def test_significance_needs_both_a_small_p_and_a_gain() -> None:
    assert claims.significant_over_gcn(of_test(0.02, 0.1)).holds
    for p, difference in ((0.3, 0.1), (0.02, -0.1)):
        found = claims.significant_over_gcn(of_test(p, difference))
        assert (found.holds, found.why) == (False, "not so for mean, lstm, pool, over 6 settings")
    assert claims.lstm_like_pool(of_test(0.3, 0.1)).holds
    assert [claims.lstm_like_pool(of_test(0.04, d)).why for d in (0.1, -0.1)] == ["LSTM is better", "pool is better"]


def test_depth_samples_noise_and_rotation() -> None:
    points = [
        {
            "data": "d",
            "aggregator": "mean",
            "k": k,
            "test_micro_f1": spread([f1]),
            "step_milliseconds": s,
            "sample_sizes": [10] * k,
        }
        for k, f1, s in ((1, 0.5, 1.0), (2, 0.6, 2.0), (3, 0.61, 40.0))
    ]
    sizes = [{"sample_size": s, "test_micro_f1": spread([f])} for s, f in ((5, 0.5), (10, 0.55), (20, 0.56))]
    lines = {"GraphSAGE-pool": [spread([0.6]), spread([0.4])], "GraphSAGE-GCN": [spread([0.6]), spread([0.2])]}
    chance = {"data": "d", "row": "Random", "task": "both", "test_micro_f1": spread([0.2])}
    records = {
        **EMPTY,
        "depth": {"points": points},
        "figure2b": {"points": sizes},
        "table1": {"rows": [chance]},
        "figure3": {"data": {"d": {}}, "lines": lines},
        "rotation": {"rows": [{"test_micro_f1": spread([v])} for v in (0.8, 0.2, 0.7)]},
    }
    assert claims.second_layer(records).ours.startswith("+20.0%")
    assert claims.third_layer(records).holds
    assert claims.third_layer_time(records).ours.startswith("20.0 x")
    for find in (claims.sample_size, claims.noise, claims.rotation):
        assert find(records).holds
    sizes[-1]["test_micro_f1"] = spread([0.7])
    lines["GraphSAGE-pool"][1] = spread([0.21])
    assert claims.sample_size(records).holds is False
    assert claims.noise(records).holds is False


def test_larger_samples_that_never_gain_show_no_diminishing_returns() -> None:
    points = [{"sample_size": s, "test_micro_f1": spread([f])} for s, f in ((5, 0.5), (10, 0.49), (20, 0.40))]
    assert claims.sample_size({**EMPTY, "figure2b": {"points": points}}).holds is False


def depths(factor: float, added: int = 20) -> Records:
    points = [
        {"data": "d", "aggregator": "mean", "k": k, "step_milliseconds": time, "sample_sizes": [25, 10, added][:k]}
        for k, time in ((2, 3.0), (3, 3.0 * factor))
    ]
    return {**EMPTY, "depth": {"points": points}}


@pytest.mark.parametrize(("factor", "holds"), [(7.0, False), (20.0, True)])
def test_a_third_layer_must_cost_what_the_paper_says(factor: float, holds: bool) -> None:
    assert claims.third_layer_time(depths(factor)).holds is holds


def test_the_time_of_a_third_layer_is_judged_only_where_the_rule_can_be_met() -> None:
    small = claims.third_layer_time(depths(5.0, added=5))
    assert (small.holds, small.why) == (None, "a third sample of 5 makes the work 6 times as much at most")


def sizes(*points: tuple[int, float, float]) -> Records:
    made = [
        {"sample_size": size, "test_micro_f1": spread([f1]), "step_milliseconds": time} for size, f1, time in points
    ]
    return {**EMPTY, "figure2b": {"points": made}}


def test_sub_sampling_must_save_half_of_the_time_for_a_point_of_f1() -> None:
    found = claims.subsampling(sizes((5, 0.5, 1.0), (10, 0.595, 2.0), (80, 0.6, 8.0)))
    assert (found.holds, found.ours) == (True, "S 10: F1 0.595 in 0.25 of the time of S 80 (0.600)")
    assert claims.subsampling(sizes((5, 0.5, 1.0), (10, 0.55, 2.0), (80, 0.6, 8.0))).holds is False
    assert claims.subsampling(sizes((5, 0.5, 1.0), (10, 0.6, 5.0), (80, 0.6, 8.0))).holds is False


@pytest.mark.parametrize(
    ("mean", "holds"),
    [
        ([0.72, 0.74, 0.73], False),  # three points, and the seeds never meet
        ([0.60, 0.80, 0.76], True),  # as far apart, but so are the seeds
        ([0.725], False),
        ([0.705], True),
    ],
)
def test_pooling_differs_where_the_seeds_do_not_explain_it(mean: list[float], holds: bool) -> None:
    most = [0.69, 0.71, 0.70] if len(mean) > 1 else [0.70]
    points = [
        {"data": "d", "aggregator": name, "test_micro_f1": spread(values)}
        for name, values in (("pool", most), ("meanpool", mean))
    ]
    found = claims.pooling({**EMPTY, "pooling": {"points": points}})
    assert found.holds is holds
    assert found.why == "" if holds else found.why.startswith("they differ on d")


@pytest.mark.parametrize(
    ("pool", "holds", "why"),
    [
        ([0.70, 0.71, 0.69], True, ""),
        ([0.70, 0.55, 0.63], False, "no more than mean (p = "),
        ([0.50, 0.51, 0.49], False, "mean explains more"),
        ([0.60, 0.61, 0.59], False, "no more than mean (p = 1.00)"),
        ([0.62], True, ""),  # one seed tells no more than the order
    ],
)
def test_pool_must_learn_more_than_the_seeds_explain(pool: list[float], holds: bool, why: str) -> None:
    others = {"mean": [0.60, 0.61, 0.59][: len(pool)], "gcn": [0.2, 0.3, 0.2][: len(pool)]}
    rows = [{"aggregator": name, "r2_new_graphs": spread(values)} for name, values in {"pool": pool, **others}.items()]
    found = claims.learned({**EMPTY, "theory": {"learned": rows}})
    assert found.holds is holds
    assert found.why.startswith(why)


def test_equal_scores_differ_by_nothing_and_one_seed_tells_nothing() -> None:
    assert chance_of([0.5, 0.5], [0.5, 0.5]) == 1.0
    assert chance_of([0.5], [0.5, 0.6]) is None
    assert chance_of([0.1, 0.2], [0.8, 0.9]) == pytest.approx(0.0101, abs=1e-4)
