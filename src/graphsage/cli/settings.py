"""From a TOML file, `--set name=value` and flags to one checked Config, and the `run.toml` that repeats a run.

Every name is one of Config's. In files and in `--set`, which know no null, the word none stands for it.
"""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from graphsage.atomic import atomic_file
from graphsage.errors import ConfigError

if TYPE_CHECKING:
    from graphsage.training.config import Config

RUN_FILE = "run.toml"
_WHERE = ("data", "split")  # a file may also say what to train on


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings by Config's names, only those that were given; and what to train on: the data and split a file names,
    or `tables`, by TableSpec's names."""

    values: dict[str, Any]
    data: str | None = None
    split: str | None = None
    tables: dict[str, Any] = dataclasses.field(default_factory=dict)

    def followed_by(self, other: "Settings") -> "Settings":
        """These, overridden by `other`. Whoever says how many epochs no longer wants an older number of steps."""
        values = {**self.values, **other.values}
        if "epochs" in other.values and "steps" not in other.values:
            values.pop("steps", None)
        tables = {} if other.data else {**self.tables, **other.tables}
        data = None if other.tables else other.data or self.data
        return Settings(values, data, other.split or self.split, tables)

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
