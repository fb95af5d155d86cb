"""How much of the paper's work a reproduction does: `quick` shows the trends on two cores, `full` is the whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphsage.baselines.deepwalk import RATES
from graphsage.errors import ConfigError
from graphsage.training.space import Choice, Space, paper_space

AGGREGATORS = ("gcn", "mean", "lstm", "pool")
TASKS = ("unsupervised", "supervised")
FORMS = ("paper", "reference")


@dataclass(frozen=True)
class Profile:
    """Sizes of every experiment. Settings that a profile does not name are the paper's."""

    name: str
    seeds: int
    forms: tuple[str, ...]
    training: Mapping[str, Mapping[str, Any]]
    """Per task, the settings that differ from the paper's."""
    rates: Mapping[str, tuple[float, ...]] | None = None
    """One learning rate or a few for each task in place of the paper's grid."""
    deepwalk: Mapping[str, Any] = field(default_factory=dict)
    deepwalk_rates: tuple[float, ...] = RATES
    sample_sizes: tuple[int, ...] = (5, 10, 20, 40, 80)
    """S1 = S2 of Figure 2B."""
    depths: tuple[tuple[int, ...], ...] = ((10,), (25, 10), (25, 10, 10))
    """Sample sizes for K = 1, 2 and 3. A target has 10 direct neighbors in each."""
    noise_levels: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    noise_aggregators: tuple[str, ...] = AGGREGATORS
    timed: Mapping[str, Any] = field(default_factory=dict)
    """The settings of Figure 2A that differ from the paper's; none outside of tests."""
    timed_steps: int = 50
    timed_nodes: int | None = None
    """Unseen nodes that Figure 2A embeds; None: all of them."""
    theory_nodes: int = 300
    theory_steps: int = 1500

    def space(self, task: str, aggregator: str) -> Space:
        fixed = {"task": task, "aggregator": aggregator}
        return paper_space(fixed) if self.rates is None else Space(fixed, {"lr": Choice(self.rates[task])})


QUICK = Profile(
    name="quick",
    seeds=1,
    forms=FORMS,
    training={
        "supervised": {"steps": 200, "sample_sizes": (10, 5)},
        "unsupervised": {"steps": 100, "sample_sizes": (10, 5)},
    },
    rates={"supervised": (0.01,), "unsupervised": (1e-3,)},
    deepwalk_rates=(0.8,),
    sample_sizes=(2, 5, 10, 20),
    depths=((5,), (10, 5), (10, 5, 5)),
    noise_levels=(0.0, 0.5, 1.0),
    noise_aggregators=("gcn", "mean", "pool"),
    timed_steps=10,
    timed_nodes=4000,
    theory_nodes=120,
    theory_steps=400,
)

FULL = Profile(name="full", seeds=5, forms=FORMS, training={"supervised": {}, "unsupervised": {"steps": 4000}})

PROFILES = {profile.name: profile for profile in (QUICK, FULL)}


def profile_named(name: str) -> Profile:
    if name not in PROFILES:
        raise ConfigError(f"--profile must be one of {', '.join(PROFILES)}; got {name!r}")
    return PROFILES[name]
