"""The claims ledger: what the paper says, what we measured, and whether it holds, by a rule that is written down."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsage.errors import DataError
from graphsage.experiments import evidence
from graphsage.experiments import evidence_figures as figures
from graphsage.experiments import evidence_times as times
from graphsage.experiments.evidence import Found, Records
from graphsage.experiments.paper import ROWS
from graphsage.experiments.profile import TASKS
from graphsage.experiments.record import MEASURED
from graphsage.experiments.session import Session

HOLDS, FAILS, UNTESTED, PENDING = "holds", "fails", "cannot be tested here", "not made yet"
VERDICTS = (HOLDS, FAILS, UNTESTED, PENDING)


@dataclass(frozen=True)
class Claim:
    """`find` returns what we measured and whether the rule is met, or says why it cannot be tested."""

    name: str
    quote: str
    place: str
    paper: str
    rule: str
    find: Callable[[Records], Found]
    tasks: tuple[str, ...] = ()
    """Of Table 1, where it is judged by that: some of its rows may have been made in part."""
    rows: tuple[str, ...] = ROWS


CLAIMS = (
    Claim("gain over features", "improves classification F1-scores by an average of 51%", "1", "+51%",
          "supervised, the best aggregator on validation, averaged over data sets: at least half of it",
          evidence.gain_over_features,
          ("supervised",)),
    Claim("gain over GCN", "significant gains (7.4% on average)", "1", "+7.4% (pool over GCN, six settings)",
          "pool over GCN averaged over settings: at least half of it", evidence.gain_over_gcn, TASKS,
          ("GraphSAGE-pool", "GraphSAGE-GCN")),
    Claim("outperforms the baselines", "outperforms all the baselines by a significant margin", "4.1", "everywhere",
          "every GraphSAGE row above every baseline, in every setting", evidence.beats_baselines,
          TASKS),
    Claim("gain over DeepWalk + features, unsupervised", "by 13.8% on the citation data and 29.1% on the Reddit data",
          "4.1", "+13.8% / +29.1%", "pool above DeepWalk + features by at least 5%, averaged",
          lambda r: evidence.over_deepwalk(r, "unsupervised"), ("unsupervised",), ("GraphSAGE-pool",)),
    Claim("gain over DeepWalk + features, supervised", "the supervised version provides a gain of 19.7% and 37.2%",
          "4.1", "+19.7% / +37.2%", "pool above DeepWalk + features by at least 5%, averaged",
          lambda r: evidence.over_deepwalk(r, "supervised"), ("supervised",), ("GraphSAGE-pool",)),
    Claim("unsupervised close to supervised", "reasonably competitive with the fully supervised version", "4.1",
          "0.92 of the supervised F1, averaged", "at least 0.85 of it, averaged", evidence.unsupervised_share, TASKS),
    Claim("same trends for macro F1", "Analogous trends hold for macro-averaged scores", "Table 1", "–",
          "rank correlation of micro and macro F1 over the methods of a setting: at least 0.7, averaged",
          evidence.macro_trend, TASKS),
    Claim("LSTM and pool are best", "LSTM- and pool-based aggregators performed the best", "4.4", "5 of 6 settings",
          "one of the two is best in more than half of the settings", evidence.best_aggregators, TASKS),
    Claim("gains over GCN are significant", "T=1.0, p=0.02 for all three", "4.4", "p = 0.02",
          "p at most 0.05 for mean, LSTM and pool over GCN, each better on average", evidence.significant_over_gcn,
          TASKS),
    Claim("LSTM and pool over mean", "gains of the LSTM and pool approaches over the mean-based aggregator are "
          "more marginal", "4.4", "p = 0.03 (LSTM), p = 0.10 (pool)", "each better than mean on average",
          evidence.marginal_over_mean, TASKS, ("GraphSAGE-mean", "GraphSAGE-LSTM", "GraphSAGE-pool")),
    Claim("LSTM and pool on PPI", "LSTM- and pooling-based aggregators providing substantial gains over the mean- and "
          "GCN-based aggregators", "4.2", "0.612 and 0.600 over 0.598 and 0.500",
          "supervised on PPI, both above mean and GCN", evidence.best_on_ppi, ("supervised",), ROWS[4:]),
    Claim("LSTM and pool do not differ", "no significant difference between the LSTM and pool approaches", "4.4",
          "T = 10.0, p = 0.46", "p above 0.05 over at least 4 settings", evidence.lstm_like_pool, TASKS,
          ("GraphSAGE-LSTM", "GraphSAGE-pool")),
    Claim("LSTM slower than pool", "significantly slower than GraphSAGE-pool (by a factor of 2)", "4.4", "2 x",
          "a supervised step takes 1.5 to 4 times as long, on every machine that was timed", times.lstm_slower),
    Claim("max and mean pooling", "no significant difference between max- and mean-pooling", "3.3", "–",
          "on no data set a difference that the seeds do not explain (Welch's t-test, p at most 0.05; with one seed 2 "
          "points)", figures.pooling),
    Claim("K = 2 over K = 1", "a consistent boost in accuracy of around 10-15%, on average", "4.3", "+10-15%",
          "at least +5% on average", figures.second_layer),
    Claim("K = 3 over K = 2", "marginal returns in performance (0-5%)", "4.3", "0-5%", "between -2% and +5%",
          figures.third_layer),
    Claim("time of K = 3", "increasing the runtime by a prohibitively large factor of 10-100x", "4.3", "10-100 x",
          "training takes 10 to 100 times as long as with K = 2", figures.third_layer_time),
    Claim("sample size", "diminishing returns for sampling large neighborhoods", "4.3", "–",
          "the first step of S gains F1, and the last one gains less", figures.sample_size),
    Claim("sub-sampling", "maintain strong predictive accuracy, while significantly improving the runtime", "4.3",
          "–", "a size of the sample within a point of the largest one's F1 takes at most half of its time",
          figures.subsampling),
    Claim("DeepWalk slower at test time", "makes DeepWalk 100-500x slower at test time", "4.3", "100-500 x",
          "at least 100 times as long as the aggregators' sampled inference (geometric mean), on every machine",
          times.deepwalk_inference),
    Claim("DeepWalk faster in training", "it is 2-5X faster at training", "C", "2-5 x",
          "five passes over the walks take a half to a fifth of the aggregators' one pass (geometric mean), on every "
          "machine",
          times.deepwalk_training),
    Claim("comparable training times", "comparable (with GraphSAGE-LSTM being the slowest)", "4.3", "LSTM slowest",
          "LSTM has the slowest supervised step, at most 10 times as long as the fastest, on every machine",
          times.lstm_slowest),
    Claim("random features", "maintaining modest performance ... even with completely random feature inputs", "E",
          "pool yes, GCN no", "on noise alone, pool above the random classifier by 5 points and above "
          "GCN by one", figures.noise),
    Claim("rotation", "embeddings can be rotated by an arbitrary orthogonal matrix", "D", "–",
          "a probe loses half of its F1 on another run, and alignment brings most of it back", figures.rotation),
    Claim("clustering coefficients", "capable of approximating clustering coefficients to an arbitrary degree", "5",
          "Theorem 1", "the constructed network is within epsilon on every graph", figures.theorem),
    Claim("clustering coefficients are learned", "provides insight into why GraphSAGE-pool outperforms", "5", "–",
          "trained on random features, pool explains more variance on new graphs than mean and GCN, by more than the "
          "seeds explain (Welch's t-test, p at most 0.05)", figures.learned),
    Claim("citation edges back in time", "96% of the 2005 citation links connect back to the 2000-2004 data", "D",
          "96%", "within 5 points on the citation data", figures.edges_back),
    Claim("Reddit edges back in time", "only 73% of edges in the Reddit test set connect back to the train data", "D",
          "73%", "within 5 points on Reddit", figures.reddit_edges_back),
    Claim("proteins without features", "42% of nodes have no non-zero feature values", "B", "42%",
          "within 2 points on PPI", figures.empty_proteins),
)  # fmt: skip


def run(session: Session) -> Path:
    records = {name: session.earlier(name) for name in MEASURED}
    if not any(records.values()):
        raise DataError(f"there is no result in {session.out}; run `graphsage reproduce table1` or another first")
    rows = [judged(claim, records) for claim in CLAIMS]
    profiles = sorted({record["profile"] for record in records.values() if record is not None})
    body = {"profile": " and ".join(profiles), "rows": rows,
            "counts": {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS},
            "trials_on": [one for made in records.values() if made for one in made["trials_on"]]}  # fmt: skip
    return session.keep("claims", "What the paper claims, and what of it holds on our data", body)


class _Noted(dict[str, dict[str, Any] | None]):
    """Records that know which of them were read."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self.read: dict[str, None] = {}

    def __getitem__(self, name: str) -> dict[str, Any] | None:
        self.read[name] = None
        return super().__getitem__(name)


def judged(claim: Claim, records: Records) -> dict[str, Any]:
    """A row of the ledger, with the profile of every result that it was judged by."""
    noted = _Noted(records)
    found = claim.find(noted)
    profiles = {name: (records[name] or {}).get("profile") for name in noted.read if records[name] is not None}
    unknown = PENDING if found.pending else UNTESTED
    verdict = unknown if found.holds is None else HOLDS if found.holds else FAILS
    short = evidence.stopped(records) if verdict == FAILS and "unsupervised" in claim.tasks else ""
    why = "; ".join(filter(None, (found.why, short)))
    other = in_reference_form(claim, records, verdict)
    drawn = [told for name in noted.read for told in figures.points_in_part(name, records[name])]
    return {"claim": claim.name, "quote": claim.quote, "place": claim.place, "paper": claim.paper, "rule": claim.rule,
            "ours": found.ours, "verdict": verdict, "why": why, "reference_form": other, "profiles": profiles,
            "in_part": evidence.rows_in_part(records["table1"], claim.tasks, claim.rows) + drawn}  # fmt: skip


def in_reference_form(claim: Claim, records: Records, verdict: str) -> str:
    """What Table 1 in the reference form has instead, where it has the same rows and would decide otherwise."""
    taken = {**records, "table1": _as_papers(records["table1"]), "wilcoxon": _as_papers(records["wilcoxon"])}
    ours, other = ({key: rows.keys() for key, rows in evidence.cells(each).items()} for each in (records, taken))
    found = claim.find(taken)
    return found.ours if ours == other and (found.holds, verdict) in ((False, HOLDS), (True, FAILS)) else ""


def _as_papers(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """The rows of the reference form as if they were of the paper's; those of no form stay."""
    if record is None:
        return None
    rows = [row for row in record["rows"] if row.get("form") != "paper"]
    return {**record, "rows": [{**row, "form": "paper"} if "form" in row else row for row in rows]}
