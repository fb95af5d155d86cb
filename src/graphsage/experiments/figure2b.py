"""Figure 2B: F1 and time of GraphSAGE-mean against the size of the sampled neighborhood, S1 = S2."""

from pathlib import Path

from graphsage.experiments.session import Session
from graphsage.experiments.varied import Variant, fixed, timed

SCORES = {"test_micro_f1": "sampled_test", "exact_test_micro_f1": "test"}


def run(session: Session) -> Path:
    # Inference is sampled too, as in the paper: the size counts at test time as well.
    variants = [Variant(f"S {size}", {"sample_size": size}, {"sample_sizes": (size, size), "sampled": True})
                for size in session.profile.sample_sizes]  # fmt: skip
    body = timed(session, "figure2b", [session.evolving], variants, fixed(session, aggregator="mean"), SCORES)
    return session.keep("figure2b", "Figure 2B: supervised GraphSAGE-mean by neighborhood sample size S1 = S2", body)
