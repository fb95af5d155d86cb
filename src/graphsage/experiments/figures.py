"""The figures, ablations and appendices: each is a list of trials and a function from their results to a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from graphsage.experiments.data import Named, Source, data_facts, opened
from graphsage.experiments.paper import NAMES
from graphsage.experiments.profile import AGGREGATORS
from graphsage.experiments.record import spread, usual
from graphsage.experiments.session import Inapplicable, Session
from graphsage.experiments.table1 import DEEPWALK, chosen_deepwalk, first_deepwalk, old_protocol, swept_deepwalk
from graphsage.experiments.theory import (
    EPSILON,
    FEATURES,
    clustering_coefficients,
    coloring,
    constructed,
    piece,
    small_world,
)
from graphsage.experiments.trial_runners import ROTATIONS, is_old, make_trial, unseen
from graphsage.graph.split import TRAIN
from graphsage.training.trials import Result, Swept, Trial, Unfinished

NO_TIMES = ("val", "seconds", "cpu_seconds")
"""Values of a timed trial that are not times of its method."""
SCORES = {"test_micro_f1": "test"}
"""Scores of a point, by their names in a trial's result."""


@dataclass(frozen=True)
class Variant:
    """`description` goes into a point of the result; `settings` are those that differ from the fixed ones."""

    label: str
    description: Mapping[str, Any]
    settings: Mapping[str, Any]


def fixed(session: Session, **more: Any) -> dict[str, Any]:
    """The settings that all points share."""
    return {"task": "supervised", "form": "paper", **session.profile.training["supervised"], **more}


def ablation(
    session: Session,
    name: str,
    sources: Sequence[Source],
    variants: Sequence[Variant],
    settings: Mapping[str, Any],
    scores: Mapping[str, str] = SCORES,
    *,
    timed: bool,
) -> dict[str, Any]:
    """A body whose `points` hold the score of each variant on each data set, and the time of its step if `timed`.

    All else is fixed, but for the learning rate: validation chooses one for each point, as in Table 1, since a rate
    that suits one depth or aggregator may ruin another. All times are of one machine.
    """
    made = session.swept(ablation_trials(name, "graphsage", sources, variants, settings))
    points = [
        {
            "data": data,
            **variants[number].description,
            **rate(session, found),
            **{name: spread(run[score] for run in found.results) for name, score in scores.items()},
        }
        for (data, number), found in made.items()
    ]
    if timed:
        few = {**settings, "steps": session.profile.timed_steps}
        named = [replace(variant, label=f"time {variant.label}") for variant in variants]
        machine, steps = session.timed(ablation_trials(name, "timed step", sources, named, few))
        for point, step in zip(points, steps.values(), strict=True):
            point |= {"step_milliseconds": round(step["step_milliseconds"], 3), "timed_on": machine}
    return {"data": data_facts(sources), "settings": dict(settings), "points": points}


def ablation_trials(
    experiment: str, type: str, sources: Sequence[Source], variants: Sequence[Variant], settings: Mapping[str, Any]
) -> dict[tuple[str, int], Trial]:
    return {
        (source.name, number): make_trial(experiment, type, variant.label, source, **{**settings, **variant.settings})
        for source in sources
        for number, variant in enumerate(variants)
    }


def rate(session: Session, found: Swept) -> dict[str, Any]:
    """The learning rate that validation chose, those it chose among, and how many there are."""
    return {
        "lr": found.chosen["lr"],
        "tried": [point["lr"] for point in found.points],
        "of": len(session.profile.space("supervised", "mean").grid()),
        **old_protocol(found),
    }


def figure2a(session: Session) -> Path:
    """Times to train and to embed unseen nodes, on the largest data set, of each machine that has timed all methods."""
    source = session.largest
    data = opened(source)
    here = methods(session, source, session.machine)
    session.time(session.with_seeds(here))
    timed = [timed_on(session, source, machine) for machine in session.machines(here, session.machine)]
    body = {
        "data": data_facts([source]),
        "unseen_nodes": len(unseen(data, None)),
        "timed_nodes": len(unseen(data, session.profile.timed_nodes)),
        **timed[0],
        "elsewhere": timed[1:],
    }
    return session.keep("figure2a", "Figure 2A: seconds to train, microseconds to embed an unseen node", body)


def methods(session: Session, source: Source, machine: str) -> dict[str, Trial]:
    """The trials to time, by the method's name in the paper's tables."""
    profile = session.profile
    common = {"nodes": profile.timed_nodes, "steps": profile.timed_steps, "machine": machine}
    found = {}
    for aggregator in AGGREGATORS:
        own = {"aggregator": aggregator, **common, "model": dict(profile.timed)}
        found[NAMES[aggregator]] = make_trial("figure2a", "timed graphsage", f"time {aggregator}", source, **own)
    if opened(source).one_graph:
        found["DeepWalk"] = make_trial("figure2a", "timed deepwalk", "time DeepWalk", source, **common, threads=1)
    return found


def timed_on(session: Session, source: Source, machine: str) -> dict[str, Any]:
    """The times of one machine, with its cores and its version of torch."""
    made = {
        name: list(session.trials.seeds(trial, session.seeds).values())
        for name, trial in methods(session, source, machine).items()
    }
    rows = compared({name: [record["result"] for record in records] for name, records in made.items()})
    for row in rows:
        row |= {"old_protocol": ["runs"]} if any(map(is_old, made[row["row"]])) else {}
    records = [record for own in made.values() for record in own]
    made_with = {f"{record['hardware']['cores']} cores, torch {record['versions']['torch']}" for record in records}
    return {"device": machine, "made_with": sorted(made_with), "rows": rows}


def compared(runs: Mapping[str, Sequence[Result]]) -> list[dict[str, Any]]:
    """A row for each method: times over the seeds, and how many times as long DeepWalk needs for an unseen node."""
    rows: dict[str, dict[str, Any]] = {}
    for name, made in runs.items():
        rows[name] = {key: spread(run[key] for run in made) for key in made[0] if key not in NO_TIMES}
    if "DeepWalk" in rows:
        online, five = (rows["DeepWalk"].get(name) for name in ("embed_microseconds", "five_pass_embed_microseconds"))
        factors = {
            "deepwalk_inference_factor": (online, "embed_microseconds"),
            "deepwalk_exact_factor": (online, "exact_embed_microseconds"),
            "deepwalk_five_pass_factor": (five, "embed_microseconds"),
        }
        for name, (theirs, ours) in factors.items():
            for row in (row for each, row in rows.items() if each != "DeepWalk"):
                row |= {} if theirs is None else {name: round(usual(theirs) / usual(row[ours]), 1)}
    return [{"row": name, **row} for name, row in rows.items()]


def figure2b(session: Session) -> Path:
    """F1 and time of GraphSAGE-mean by the size of the sampled neighborhood, S1 = S2."""
    # Inference is sampled too, as in the paper: the size counts at test time as well.
    variants = [
        Variant(f"S {size}", {"sample_size": size}, {"sample_sizes": (size, size), "sampled": True})
        for size in session.profile.sample_sizes
    ]
    scores = {"test_micro_f1": "sampled_test", "exact_test_micro_f1": "test"}
    body = ablation(
        session, "figure2b", [session.evolving], variants, fixed(session, aggregator="mean"), scores, timed=True
    )
    return session.keep("figure2b", "Figure 2B: supervised GraphSAGE-mean by neighborhood sample size S1 = S2", body)


def depth(session: Session) -> Path:
    """Section 4.3."""
    variants = [
        Variant(
            f"K {len(sizes)} {aggregator}",
            {"aggregator": aggregator, "k": len(sizes), "sample_sizes": list(sizes)},
            {"aggregator": aggregator, "sample_sizes": sizes},
        )
        for aggregator in ("mean", "pool")
        for sizes in session.profile.depths
    ]
    body = ablation(session, "depth", session.sources, variants, fixed(session), timed=True)
    body = session.joined("depth", body, "points", lambda point: (point["data"], point["aggregator"], point["k"]))
    return session.keep("depth", "Section 4.3: supervised GraphSAGE at depth K = 1, 2 and 3", body)


def pooling(session: Session) -> Path:
    """Section 3.3."""
    variants = [Variant(name, {"aggregator": name}, {"aggregator": name}) for name in ("pool", "meanpool")]
    body = ablation(session, "pooling", session.sources, variants, fixed(session), timed=False)
    body = session.joined("pooling", body, "points", lambda point: (point["data"], point["aggregator"]))
    return session.keep("pooling", "Section 3.3: max pooling and mean pooling, supervised", body)


def figure3(session: Session) -> Path:
    """F1 as features are replaced step by step with Gaussian noise, for GraphSAGE and the baselines."""
    source, profile = session.evolving, session.profile
    settings = fixed(session)
    plain = {
        level: make_trial("figure3", "features", f"noise {level} features", source, noise=level)
        for level in profile.noise_levels
    }
    lines = {"Raw features": [spread(run["test"] for run in runs) for runs in session.runs(plain).values()]}
    trials: dict[tuple[str, float], Trial] = {}
    for aggregator in profile.noise_aggregators:
        for level in profile.noise_levels:
            label, own = f"noise {level} {aggregator}", {**settings, "aggregator": aggregator, "noise": level}
            trials[NAMES[aggregator], level] = make_trial("figure3", "graphsage", label, source, **own)
    for (name, _), found in session.swept(trials).items():
        cell = spread(run["test"] for run in found.results) | rate(session, found)
        lines.setdefault(name, []).append(cell)
    if opened(source).one_graph:
        lines |= deepwalk_lines(session)
    body = {"data": data_facts([source]), "settings": settings, "levels": list(profile.noise_levels), "lines": lines}
    return session.keep("figure3", "Figure 3: test micro F1 by the share of feature columns replaced by noise", body)


def deepwalk_lines(session: Session) -> dict[str, list[Any]]:
    """DeepWalk reads no features: its score is the same at every level of noise."""
    source, levels = session.evolving, session.profile.noise_levels
    alone, beside = DEEPWALK
    asked = [(alone, 0.0), *((beside, level) for level in levels)]
    if session.deepwalk:
        if not session.chosen:
            session.attempt(lambda: session.trials.run(first_deepwalk(session, source, max(levels))))
        session.attempt(lambda: session.trials.run(chosen_deepwalk(session, source, asked)))
    found = [swept_deepwalk(session, source, *each) for each in asked]
    cells = [
        spread(run["test"] for run in each.results) | each.chosen | old_protocol(each)
        for each in found
        if each is not None
    ]
    if len(cells) == len(asked):
        return {alone: cells[:1] * len(levels), beside: cells[1:]}
    if session.deepwalk:
        raise Unfinished(session.left[-1])
    return {}


def rotation(session: Session) -> Path:
    """Appendix D."""
    source = session.single
    if source is None:
        reasons = "; ".join(f"{each.name}: {opened(each).apart}" for each in session.sources)
        raise Inapplicable(f"DeepWalk cannot be applied ({reasons}); add --data setmm")
    trial = make_trial(
        "rotation", "rotation", "rotation", source, **session.profile.deepwalk, lr=max(session.profile.deepwalk_rates)
    )
    runs = session.runs({"rotation": trial})["rotation"]
    rows = [{"row": name, "test_micro_f1": spread(run[name] for run in runs)} for name in ROTATIONS]
    body = {"data": data_facts([source]), "rows": rows}
    return session.keep("rotation", "Appendix D: a probe fitted on one DeepWalk run and scored on another", body)


def theory(session: Session) -> Path:
    """Theorem 1 and Corollary 2."""
    profile = session.profile
    size, scores = {"nodes": profile.theory_nodes, "steps": profile.theory_steps}, ("r2_same_graphs", "r2_new_graphs")
    trials = {
        name: make_trial("theory", "theory", f"theory {name}", None, aggregator=name, **size)
        for name in ("pool", "mean", "gcn")
    }
    learned = [
        {"aggregator": aggregator, **{name: spread(run[name] for run in own) for name in scores}}
        for aggregator, own in session.runs(trials).items()
    ]
    settings = {**size, "features": FEATURES}
    body = {"constructed": check_construction(session), "epsilon": EPSILON, "learned": learned, "settings": settings}
    return session.keep(
        "theory", "Section 5: clustering coefficients, constructed and learned from random features", body
    )


def check_construction(session: Session) -> list[dict[str, Any]]:
    """The constructed network on random graphs and on a part of the data's graph: its largest error."""
    graphs = {f"small world, seed {seed}": small_world(30, 4, 0.2, seed) for seed in range(3)}
    source = session.evolving
    graphs[f"{source.name}, 40 nodes around the first"] = piece(opened(source).graph, 40)
    found = []
    for name, graph in graphs.items():
        x = torch.randn(graph.num_nodes, 4, generator=torch.Generator().manual_seed(0))
        counted = clustering_coefficients(graph)
        error = (constructed(graph, x) - counted).abs().max()
        facts = {"graph": name, "nodes": graph.num_nodes, "colors": max(coloring(graph)) + 1}
        mean = round(float(counted.mean()), 4)
        found.append({**facts, "mean_coefficient": mean, "largest_error": float(f"{error:.1e}")})
    return found


def facts(session: Session) -> Path:
    """Numbers that the paper states about its own data."""
    body = {
        "data": data_facts(session.sources),
        "rows": [{"data": source.name, **measured(opened(source))} for source in session.sources],
    }
    body = session.joined("facts", body, "rows", lambda row: str(row["data"]))
    return session.keep("facts", "Appendices B and D: edges back to training nodes, nodes without features", body)


def measured(data: Named) -> dict[str, float]:
    """Of the edges at unseen nodes, the share that lead to training nodes; the share of nodes with features all 0."""
    graph = data.graph
    seen = data.split.codes == TRAIN
    from_unseen = ~seen[graph.edge_rows]
    back = seen[graph.indices.long()] & from_unseen
    # An edge between two unseen nodes is stored twice, one that leads back only once at its unseen end.
    inner = int((from_unseen & ~back).sum()) / (1 if graph.directed else 2)
    share = int(back.sum()) / max(int(back.sum()) + inner, 1)
    empty = 0.0 if graph.features is None else float((graph.features == 0).all(dim=1).double().mean())
    return {"edges_back": round(share, 4), "nodes_without_features": round(empty, 4)}
