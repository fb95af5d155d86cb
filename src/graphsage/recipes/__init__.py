"""Recipes: settings for some data, each a TOML file in this folder. Its first line says what it is for."""

import tomllib
from pathlib import Path
from typing import Any

from graphsage.errors import ConfigError, setting

RECIPES: dict[str, Path] = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}


def recipe(name: str) -> dict[str, Any]:
    """The settings of a recipe, by Config's names."""
    if name not in RECIPES:
        raise ConfigError(f"{setting('recipe')} must be {' or '.join(RECIPES)}; got {name!r}")
    return tomllib.loads(RECIPES[name].read_text(encoding="utf-8"))


def purpose(name: str) -> str:
    """The first line of a recipe, without its comment sign."""
    return RECIPES[name].read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
