"""Settings from TOML files, `--set` and flags; search spaces; and the `run.toml` that repeats a run.

Every name is one of Config's. TOML has no null: the word none stands for it."""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from graphsage.atomic import atomic_file
from graphsage.errors import ConfigError

if TYPE_CHECKING:
    from graphsage.tables.spec import TableSpec
    from graphsage.training.config import Config
    from graphsage.training.space import Choice, Range, Space


RUN_FILE = "run.toml"
_WHERE = ("data", "split")  # a file may also say what to train on


@dataclasses.dataclass(frozen=True)
class Settings:
    """The given settings by Config's names, and the data: path and split, or `tables` by TableSpec's names."""

    values: dict[str, Any]
    data: str | None = None
    split: str | None = None
    tables: dict[str, Any] = dataclasses.field(default_factory=dict)

    def followed_by(self, other: "Settings") -> "Settings":
        """These, overridden by `other`. New epochs discard older steps."""
        values = {**self.values, **other.values}
        if "epochs" in other.values and "steps" not in other.values:
            values.pop("steps", None)
        tables = {} if other.data else {**self.tables, **other.tables}
        data = None if other.tables else other.data or self.data
        return Settings(values, data, other.split or self.split, tables)

    def spec(self) -> "TableSpec":
        """The tables; the task regression reads labels as numbers."""
        from graphsage.tables.spec import TableSpec

        numbers = self.values.get("task") == "regression" and self.tables.get("label")
        return TableSpec.from_dict(({"label_type": "number"} if numbers else {}) | self.tables)

    def config(self) -> "Config":
        from graphsage.training.config import Config

        return Config.from_dict(self.values).resolved()


def from_file(path: Path) -> Settings:
    """Read and check a TOML file; every error names the file and the key."""
    return from_table(read_toml(path, "--config"), path)


def read_toml(path: Path, flag: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; {flag} takes a TOML file") from None
    except IsADirectoryError:
        hint = f", for a run its {RUN_FILE}" if flag == "--config" else ""
        raise ConfigError(f"{path} is a folder; {flag} takes a TOML file{hint}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def from_table(table: dict[str, Any], path: Path) -> Settings:
    """Settings, and what to train on, from a file that was read."""
    where = {name: table.pop(name) for name in _WHERE if name in table}
    tables = where.pop("data") if isinstance(where.get("data"), dict) else {}
    for name, value in where.items():
        if not isinstance(value, str):
            raise ConfigError(f"{path}: {name} must be a string; got {value!r}")
    if tables:
        from graphsage.tables.spec import TableSpec

        tables = checked(tables, f"{path}: [data]", TableSpec)
    return Settings(checked(table, str(path)), where.get("data"), where.get("split"), tables)


def from_pairs(pairs: Sequence[str]) -> Settings:
    """`name=value` of `--set`. The value is written as in TOML; a word needs no quotes."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"--set takes name=value, such as --set cap=row; got {pair!r}")
        values[name.strip()] = _value(text.strip())
    return Settings(checked(values, "--set"))


def write_run_file(path: Path, config: "Config", data: str | Mapping[str, Any], split: str) -> None:
    """The resolved settings in the form that `--config` reads, so that a run can be repeated or continued."""
    from graphsage import __version__

    lines = [f"# graphsage {__version__}; `graphsage train --config {path.name} --out NEW` repeats this run"]
    lines += [f"data = {_toml(data)}"] if isinstance(data, str) else []
    lines += [f"split = {_toml(split)}"]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value is not None or field.default is not None:
            lines.append(f"{field.name} = {_toml(value)}")
    if not isinstance(data, str):
        lines += ["", "[data]", *(f"{name} = {_toml(value)}" for name, value in data.items())]
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def checked(values: Mapping[str, Any], source: str, of: Any = None) -> dict[str, Any]:
    """Types by the annotations of a dataclass (Config); ranges and choices are its own business."""
    from pydantic import ConfigDict, ValidationError, create_model

    from graphsage.training.config import Config

    of = Config if of is None else of
    hints = get_type_hints(of)
    known = [field.name for field in dataclasses.fields(of)]
    for name in values:
        if name not in known:
            raise ConfigError(f"{source}: there is no setting {name!r}; settings are {', '.join(sorted(known))}")
    shape: Any = {name: (hints[name], ...) for name in values}
    model = create_model("Settings", __config__=ConfigDict(strict=True, extra="forbid"), **shape)
    given = {name: _plain(value) for name, value in values.items()}
    try:
        return dict(model(**given))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{source}: {place}: {first['msg'].lower()}; got {first['input']!r}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return None if value == "none" else value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _toml(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        escaped = "".join(_escape(c) for c in value)
        return f'"{escaped}"'
    return repr(value)


def _escape(character: str) -> str:
    if character in '\\"':
        return "\\" + character
    return f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character


PAPER = "paper"
_RANGE = {"low", "high", "log", "step"}


def read_space(source: str, more: Settings) -> "tuple[Space, Settings]":
    """The space of a file, or the paper's, and the settings around it; `more`, from flags, overrides what it fixes."""
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
