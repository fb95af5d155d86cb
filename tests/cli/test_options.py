"""Options generated from settings dataclasses."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import typer

from command_line import SMALL, Command
from graphsage.cli.options import App, converted, field_docs, option_name, shown_by, with_settings
from graphsage.cli.train import command as train
from graphsage.errors import ConfigError
from graphsage.serving.settings import Settings
from graphsage.tables.spec import TableSpec
from graphsage.training.config import FORMS, Config


@dataclasses.dataclass(frozen=True, slots=True)
class Oven:
    """Settings of an oven."""

    heat: float = 0.5
    """Share of the [full] power."""
    shelves: tuple[int, ...] = (1, 3)
    """Shelves in use."""
    minutes: int | None = 40
    """Time; none bakes on."""
    fan: bool = True
    """Move the air."""
    name: str | None = None
    """What it is called."""
    salt: str | None = None
    """Brand of the salt. Unset: none."""
    spices: tuple[str, ...] = ()
    """Spices; may be repeated."""
    lamp: bool = False
    """Not an option below."""


NAMES = ("heat", "shelves", "minutes", "fan", "name", "salt", "spices")


def baked(*words: str) -> dict[str, Any]:
    """The settings that a command with generated options receives."""
    app, got = App(), {}

    @app.command()
    @with_settings(Oven, {"Baking": NAMES}, choices={"name": ("one", "two")}, repeated=("spices",))
    def bake(dish: str, **options: Any) -> None:
        got.update(options, dish=dish)

    app(list(words), standalone_mode=False)
    return got


def test_a_field_is_an_option_with_its_docstring_type_and_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    baked("--help")
    lines = {" ".join(line.strip("│ ").split()) for line in capsys.readouterr().out.splitlines()}
    assert {
        "--heat NUMBER Share of the [full] power. [default: 0.5]",
        "--shelves N,N,... Shelves in use. [default: 1,3]",
        "--minutes N|none Time; none bakes on. [default: 40]",
        "--fan --no-fan Move the air. [default: on]",
        "--name NAME What it is called. [default: unset]",
        "--salt NAME Brand of the salt. Unset: none.",
        "--spices NAME Spices; may be repeated.",
    } <= lines
    assert not any("lamp" in line for line in lines)


def test_options_become_values_of_the_fields_types() -> None:
    assert baked("pie") == {"dish": "pie", **dict.fromkeys(NAMES)}
    words = ("pie", "--heat", "1", "--shelves", "2, 4,6", "--minutes", "none", "--no-fan", "--name", "none")
    words += ("--spices", "salt", "--spices", "pepper, black")
    given = {"heat": 1.0, "shelves": (2, 4, 6), "minutes": None, "fan": False, "name": "none"}
    given["spices"] = ("salt", "pepper, black")
    assert converted(Oven, baked(*words)) == given
    assert converted(Oven, baked("pie")) == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--heat", "hot"), "--heat must be a valid number; got 'hot'"),
        (("--shelves", "1;2"), "--shelves must be numbers separated by commas, such as 1,3; got '1;2'"),
        (("--shelves", ""), "--shelves must be numbers"),
        (("--minutes", "1.5"), "--minutes must be a valid integer or none; got '1.5'"),
    ],
)
def test_a_value_of_another_type_is_an_error(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        converted(Oven, baked("pie", *words))
    assert message in str(error.value)


def test_defaults_that_depend_on_a_choice_name_it() -> None:
    assert shown_by(FORMS)["clip"] == "0; reference 5.0"
    assert shown_by(FORMS)["redraw"] == "on; reference off"


@pytest.mark.parametrize("settings", [Config, Settings, TableSpec])
def test_every_setting_says_what_it_is(settings: Any) -> None:
    assert field_docs(settings).keys() == {field.name for field in dataclasses.fields(settings)}


def test_every_setting_of_a_run_and_of_tables_is_an_option_of_train(
    graphsage: Command, data: Path, tmp_path: Path
) -> None:
    app = App()
    app.command()(train)
    known = {name for option in typer.main.get_command(app).params for name in option.opts}
    fields = (*dataclasses.fields(Config), *dataclasses.fields(TableSpec))
    assert {option_name(field.name) for field in fields} <= known
    words = ("--no-standardize", "--max-degree", "none", "--clip", ".5", "--bias", "--cap", "row")
    assert graphsage("train", data, "--out", tmp_path / "run", *SMALL, *words).code == 0
    settings = graphsage("info", tmp_path / "run", "--json").json["settings"]
    wanted = {"standardize": False, "max_degree": 128, "clip": 0.5, "bias": True, "cap": "row"}
    assert {name: settings[name] for name in wanted} == wanted
