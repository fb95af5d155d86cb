"""Every error a user can cause, in one tree.

GraphSageError
├── ConfigError     a setting is wrong              (also a ValueError)
├── DataError       a file, table or array is wrong (also a ValueError)
│   ├── GraphError  edges, features or labels do not make a graph
│   └── UnknownNodeError  a change or a question names a node that is not there
├── BundleError     a model folder cannot be used   (also a ValueError)
├── StoreError      a live graph's folder is in use, damaged or of another make
│   ├── ChangesGoneError  the journal no longer has the changes that a reader of the feed needs
│   ├── LostChangesError  acknowledged changes at the end of the journal are damaged or missing
│   └── DamageError  a part of its files is not as it was written; the rest may still be served
├── NodeStateError  a node is not in the state that a change was made for
├── LostRankError   another rank of a training run died or cannot be reached
└── OutputError     a result cannot be written      (also an OSError)
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

_FLAGS = "GRAPHSAGE_MESSAGES_NAME_FLAGS"  # an environment variable, so that worker processes inherit it


class GraphSageError(Exception):
    """Base of all errors raised on purpose. The command line prints it as one sentence and exits with code 2."""

    reported: bool | None = None
    """Whether another rank prints this error. None: rank 0 prints it, all other ranks are silent."""


class ConfigError(GraphSageError, ValueError):
    pass


class DataError(GraphSageError, ValueError):
    pass


class GraphError(DataError):
    pass


class UnknownNodeError(DataError):
    pass


class BundleError(GraphSageError, ValueError):
    pass


class StoreError(GraphSageError):
    pass


class ChangesGoneError(StoreError):
    pass


class LostChangesError(StoreError):
    def __init__(self, message: str, last: int) -> None:
        super().__init__(message)
        self.last = last  # the number of the last good change


class DamageError(StoreError):
    pass


class NodeStateError(GraphSageError):
    pass


class DataWarning(UserWarning):
    """A setting, table or column without effect, or data read in a way that may not be meant."""


class LostRankError(GraphSageError):
    pass


class OutputError(GraphSageError, OSError):
    pass


def setting(name: str, *value: object) -> str:
    """A setting as the interface in use spells it: `max_degree` or `cap="row"` in Python, `--max-degree` or `--cap row`
    on the command line. Messages use this and `written`, never a literal name."""
    flag = f"--{name.replace('_', '-')}" if _names_flags() else name
    if not value:
        return flag
    if not _names_flags():
        return f"{name}={value[0]!r}"
    if isinstance(value[0], bool):
        return flag if value[0] else f"--no-{flag[2:]}"
    return f"{flag} {written(value[0])}"


def written(value: object) -> str:
    """A setting's value as the interface in use writes it: `(25, 10)` and `None`, or `25,10` and `none`."""
    if not _names_flags():
        return repr(value)
    return ",".join(map(str, value)) if isinstance(value, tuple) else "none" if value is None else str(value)


@contextmanager
def messages_name_flags() -> Iterator[None]:
    """Within the block, messages spell settings as on the command line, in this process and in those it starts."""
    before = os.environ.get(_FLAGS)
    os.environ[_FLAGS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FLAGS]
        else:
            os.environ[_FLAGS] = before


def _names_flags() -> bool:
    return _FLAGS in os.environ


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse a setting that is none of those `known`."""
    if value not in (choices := tuple(known)):
        raise ConfigError(f"{setting(name)} must be one of {', '.join(choices)}; got {value!r}")


def refuse_unused(given: Iterable[str], unused: Mapping[str, str]) -> None:
    """Refuse `given` settings that are in `unused`, which maps a setting without effect to what it applies to."""
    for name in given:
        if name in unused:
            raise ConfigError(f"{setting(name)} has no effect here: it applies {unused[name]}; leave it out")


def at_least(minimum: float, owner: object, *names: str) -> None:
    """Refuse settings of `owner` that are below `minimum` or not finite. None is allowed."""
    for name in names:
        value = getattr(owner, name)
        if value is not None and not minimum <= value < math.inf:
            finite = " and finite" if isinstance(value, float) else ""
            raise ConfigError(f"{setting(name)} must be at least {minimum:g}{finite}; got {value}")


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused `error`: an interrupted import may raise another exception in its place."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
