"""From `sweep.toml` to a Space: a file of settings, as `graphsage train --config` takes it, with a table [space].

epochs = 20                                           # the same in every trial

[space]
lr = { low = 0.0003, high = 0.03, log = true }        # a range
dropout = { low = 0.0, high = 0.6, step = 0.1 }
aggregator = ["mean", "pool"]                         # choices
sample_sizes = [[25, 10], [10, 10]]
"""

from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from graphsage.cli.settings import Settings, checked, from_table, read_toml
from graphsage.errors import ConfigError

if TYPE_CHECKING:
    from graphsage.training.space import Choice, Range, Space

PAPER = "paper"
_RANGE = {"low", "high", "log", "step"}


def read_space(source: str, more: Settings) -> "tuple[Space, Settings]":
    """The space, and the settings around it; `more`, from flags, overrides what the file fixes."""
    from graphsage.training.space import Space, paper_space

    if source == PAPER:
        return paper_space(more.values), more
    path = Path(source)
    table = read_toml(path, "--space")
    axes = table.pop("space", None)
    if not isinstance(axes, dict) or not axes:
        raise ConfigError(f"{path} has no table [space]; write what to search there, such as lr = [0.01, 0.001]")
    around = from_table(table, path).followed_by(more)
    found = {name: _axis(name, value, path) for name, value in axes.items()}
    return Space(around.values, found, name=path.name), around


def _axis(name: str, value: Any, path: Path) -> "Choice | Range":
    from graphsage.training.space import Choice

    if isinstance(value, list):
        where = f"{path}: [space]"
        return Choice(tuple(checked({name: one}, where)[name] for one in value))
    if isinstance(value, dict):
        return _range(name, value, path)
    raise ConfigError(
        f"{path}: [space]: {name} must be a list of choices or a range {{ low = ..., high = ... }}; got "
        f"{value!r}; a setting that is the same in every trial goes above [space]"
    )


def _range(name: str, value: dict[str, Any], path: Path) -> "Range":
    from graphsage.training.space import make_range

    where = f"{path}: [space]: {name}"
    kinds = _number_types(name, path)
    if not kinds:
        raise ConfigError(f"{where} is not a number and has no range; list its values")
    if unknown := sorted(set(value) - _RANGE):
        raise ConfigError(f"{where}: a range has low, high, log and step; got {unknown[0]}")
    if missing := [end for end in ("low", "high") if end not in value]:
        raise ConfigError(f"{where}: a range needs low and high; {' and '.join(missing)} is missing")
    low, high = (checked({name: value[end]}, f"{path}: [space]: {end} of")[name] for end in ("low", "high"))
    if low is None or high is None:
        raise ConfigError(f"{where}: low and high must be numbers; list the values instead")
    log: Any = value.get("log", False)
    step: Any = value.get("step")
    if not isinstance(log, bool):
        raise ConfigError(f"{where}: log must be true or false; got {log!r}")
    if step is not None and (isinstance(step, bool) or type(step) not in kinds):
        raise ConfigError(f"{where}: step must be a {'' if float in kinds else 'whole '}number; got {step!r}")
    return make_range(name, low, high, log=log, step=step, whole=float not in kinds)


def _number_types(name: str, path: Path) -> set[type]:
    """int, or int and float; none for a setting that is not a number."""
    from graphsage.training.config import Config

    hints = get_type_hints(Config)
    if name not in hints:
        checked({name: None}, f"{path}: [space]")  # says which settings there are
    hint = hints[name]
    kinds = set(get_args(hint)) if isinstance(hint, UnionType) else {hint}
    return {int, float} if float in kinds else kinds & {int}
