"""The parts of the report, from the records of the experiments."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphsage.experiments.claims import FAILS, HOLDS, PENDING, UNTESTED
from graphsage.experiments.record import by_machine, short, usual
from graphsage.experiments.section import Record, Section, Table, value
from graphsage.experiments.table1_sections import settings, table1

_TURNED = {HOLDS: "fails", FAILS: "holds"}
_MARKS = {HOLDS: "✓ ", FAILS: "✗ ", UNTESTED: "– ", PENDING: "… "}


def sections(records: Mapping[str, Record | None]) -> list[Section]:
    """Those whose record is there, the claims first."""
    made = []
    for name, write in (("claims", in_short), ("claims", claims), ("table1", table1), ("wilcoxon", wilcoxon),
                        ("figure2a", figure2a), ("figure2b", figure2b), ("depth", depth), ("pooling", pooling),
                        ("figure3", figure3), ("rotation", rotation), ("theory", theory), ("facts", facts),
                        ("table1", settings)):  # fmt: skip
        record = records.get(name)
        if record is not None:
            section = write(record)
            said = f" The paper: {record['paper']}." if "paper" in record else ""
            made.append(replace(section, text=section.text + said + ("" if write is settings else spent(record))))
    return made


def spent(record: Record) -> str:
    """How long the trials of a result took, one after another."""
    time = record["time"]
    if not time["trials"]:
        return ""
    seconds = time["trial_seconds"]
    told = f"{seconds} seconds" if seconds < 100 else f"{seconds / 60:,.0f} minutes"
    return f" Made of {time['trials']} trials, {told} in all."


HEADLINES = ("gain over features", "gain over GCN", "outperforms the baselines", "unsupervised close to supervised",
             "K = 2 over K = 1", "sample size", "DeepWalk slower at test time",
             "clustering coefficients")  # fmt: skip
"""Claims that a reader in a hurry asks for."""


def in_short(record: Record) -> Section:
    found = {row["claim"]: row for row in record["rows"]}
    rows = [(_MARKS[row["verdict"]] + row["claim"], row["paper"], row["ours"].partition(" (")[0])
            for row in (found[name] for name in HEADLINES if name in found)]  # fmt: skip
    return Section("In short", "✓ holds, ✗ does not.", (Table(("claim", "the paper", "ours"), rows),))


def claims(record: Record) -> Section:
    rows: list[tuple[str, ...]] = []
    for row in record["rows"]:
        why = f"; {row['why']}" if row["why"] else ""
        trained = {name: profile for name, profile in row["profiles"].items() if name != "facts"}
        if row.get("reference_form"):
            why += f"; in the reference form it {_TURNED[row['verdict']]}: {row['reference_form']}"
        why += " (quick)" if "quick" in trained.values() else ""
        why += " (in part)" if row["in_part"] else ""
        said = f"“{row['quote']}” ({row['place']})"
        rows.append((_MARKS[row["verdict"]] + row["claim"], said, row["paper"], row["ours"] + why, row["rule"]))
    rows.sort(key=lambda row: "✗✓–…".index(row[0][0]))
    text = ("✓ holds, ✗ does not, – cannot be tested here, … not made yet. Judged by the paper's form; where the "
            "reference form decides otherwise, it is told. (quick): few steps and one learning rate.")  # fmt: skip
    partly = dict.fromkeys(part for row in record["rows"] for part in row["in_part"])
    if partly:
        text += f" (in part): judged also by what deserves a longer sweep or more seeds: {', '.join(partly)}."
    return Section("Claims", text, (Table(("claim", "the paper", "its value", "ours", "holds if"), rows),))


def wilcoxon(record: Record) -> Section:
    rows = [(f"{r['a']} and {r['b']}, {r['form']} form", f"T = {r['t']:g}, p = {r['p']:.2f}" if "p" in r else "–",
             f"{r['mean_difference']:+.3f}" if "p" in r else "–", str(len(r["settings"])),
             f"T = {r['paper_t']:g}, p = {r['paper_p']:.2f}") for r in record["rows"]]  # fmt: skip
    right = sum((c["t"], c["p"]) == (c["paper_t"], c["paper_p"]) for c in record["check"])
    text = f"Fed with the paper's own Table 1, the test returns {right} of the {len(record['check'])} published pairs."
    text += "".join(f" Judged in the {form} form also by rows that were made in part: {', '.join(rows)}."
                    for form, rows in record["in_part"].items() if rows)  # fmt: skip
    head = ("aggregators", "ours", "mean difference", "settings", "the paper")
    return Section("Signed-rank test", text, (Table(head, rows),))


def figure2a(record: Record) -> Section:
    rows = []
    for machine, timed in by_machine(record).items():
        for r in timed:
            step, exact = (short(usual(r[name])) if name in r else "–"
                           for name in ("supervised_step_milliseconds", "exact_embed_microseconds"))  # fmt: skip
            factors = [r[name] for name in ("deepwalk_inference_factor", "deepwalk_exact_factor") if name in r]
            rows.append((machine, r["row"], step, short(usual(r["pass_seconds"])),
                         short(usual(r["embed_microseconds"])), exact,
                         " and ".join(f"{factor:,.0f} x" for factor in factors) or "–"))  # fmt: skip
    head = ("on", "method", "supervised step of 512, ms", "pass over the walks, s", "unseen node, sampled, µs",
            "unseen node, exact, µs", "DeepWalk is slower by, sampled and exact")  # fmt: skip
    text = (f"On {next(iter(record['data']))}, {record['timed_nodes']:,} of {record['unseen_nodes']:,} unseen nodes; "
            f"medians over the seeds ({'; '.join(map(timed_with, (record, *record.get('elsewhere', ()))))}). A pass is "
            "computed from timed steps. Without a GPU DeepWalk runs on one thread, which is its fastest, the others on "
            "all.")  # fmt: skip
    return Section("Figure 2A: time", text, (Table(head, rows),), "figure2a")


def timed_with(timed: Record) -> str:
    """What one machine's times were taken with, and how many seeds they have."""
    seeds = sorted({len(row["pass_seconds"]["values"]) for row in timed["rows"]})
    counts = f"{' or '.join(map(str, seeds))} seed{'s' if seeds[-1] > 1 else ''}"
    return f"{timed['device']}: {', '.join([*timed.get('made_with', ()), counts])}"


def rates(cells: Sequence[Record]) -> str:
    """Which learning rates validation chose among."""
    tried = list(dict.fromkeys(tuple(cell["tried"]) for cell in cells))
    if len(tried) != 1:
        return "learning rates chosen on validation among those that were tried for each point"
    words = ", ".join(f"{lr:g}" for lr in tried[0])
    return f"learning rate {words}" + (" throughout" if len(tried[0]) == 1 else ", by validation")


def timed(points: Sequence[Record]) -> str:
    return f"a step of 512 nodes timed on {' and '.join(dict.fromkeys(point['timed_on'] for point in points))}"


def figure2b(record: Record) -> Section:
    rows = [(str(p["sample_size"]), value(p["test_micro_f1"]), value(p["exact_test_micro_f1"]),
             f"{p['lr']:g}", f"{p['step_milliseconds']:,.1f}") for p in record["points"]]  # fmt: skip
    head = ("S1 = S2", "test F1, sampled inference", "exact inference", "rate", "training step, ms")
    text = f"Supervised GraphSAGE-mean; {rates(record['points'])}; {timed(record['points'])}."
    return Section("Figure 2B: size of the sample", text, (Table(head, rows),), "figure2b")


def depth(record: Record) -> Section:
    rows = [(p["data"], p["aggregator"], str(p["k"]), str(tuple(p["sample_sizes"])), value(p["test_micro_f1"]),
             f"{p['lr']:g}", f"{p['step_milliseconds']:,.1f}") for p in record["points"]]  # fmt: skip
    head = ("data", "aggregator", "K", "samples", "test F1", "rate", "training step, ms")
    text = f"Supervised; {rates(record['points'])}; {timed(record['points'])}."
    return Section("Depth K", text, (Table(head, rows),), "depth")


def pooling(record: Record) -> Section:
    rows = [(r["data"], {"pool": "max", "meanpool": "mean"}[r["aggregator"]], value(r["test_micro_f1"]), f"{r['lr']:g}")
            for r in record["points"]]  # fmt: skip
    text = f"Max and mean over the neighbors' transformed vectors (section 3.3), supervised; {rates(record['points'])}."
    return Section("Pooling", text, (Table(("data", "pooling", "test F1", "rate"), rows),))


def facts(record: Record) -> Section:
    rows = [(r["data"], f"{100 * r['edges_back']:.1f}%", f"{100 * r['nodes_without_features']:.1f}%")
            for r in record["rows"]]  # fmt: skip
    text = "Of each graph as it is split here."
    head = ("data", "edges of unseen nodes that lead back to training nodes", "nodes without features")
    return Section("Facts about the data", text, (Table(head, rows),))


def figure3(record: Record) -> Section:
    rows = [(name, *(value(cell) for cell in line)) for name, line in record["lines"].items()]
    head = ("method", *(f"{100 * level:.0f}% noise" for level in record["levels"]))
    swept = [cell for line in record["lines"].values() for cell in line if "tried" in cell]
    text = (f"Supervised; {rates(swept)}; feature columns replaced by Gaussian noise. DeepWalk reads "
            "no features; its settings, too, are chosen on validation.")  # fmt: skip
    return Section("Figure 3: noise", text, (Table(head, rows),), "figure3")


def rotation(record: Record) -> Section:
    rows = [(r["row"], value(r["test_micro_f1"])) for r in record["rows"]]
    text = ("A probe fitted on the vectors of one DeepWalk run, asked about the same nodes' vectors of another run, "
            "before and after Procrustes alignment: why DeepWalk cannot cross graphs (Appendix D).")  # fmt: skip
    return Section("Rotation", text, (Table(("vectors asked about", "test F1"), rows),))


def theory(record: Record) -> Section:
    built = [(r["graph"], str(r["nodes"]), str(r["colors"]), f"{r['mean_coefficient']:.3f}",
              f"{r['largest_error']:.0e}") for r in record["constructed"]]  # fmt: skip
    learned = [(r["aggregator"], value(r["r2_same_graphs"]), value(r["r2_new_graphs"])) for r in record["learned"]]
    head = ("graph", "nodes", "colors", "mean coefficient", "largest error")
    text = (f"Theorem 1 constructed with the pooling aggregator (error below {record['epsilon']:.0e}), and clustering "
            "coefficients learned from random features (R², 1 is perfect).")  # fmt: skip
    second = Table(("aggregator", "R² on training graphs, new features", "R² on new graphs"), learned)
    return Section("Clustering coefficients", text, (Table(head, built), second))
