"""Every committed recipe is a valid set of settings, and single settings override it."""

import dataclasses

import pytest

import graphsage as gs
from graphsage.errors import ConfigError
from graphsage.recipes import RECIPES, purpose, recipe
from graphsage.training.config import Config
from planted import planted_graph, planted_split


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_valid_and_says_what_it_is_for(name: str) -> None:
    config = Config.from_dict(recipe(name)).resolved()
    assert not config.without_effect()
    assert purpose(name).endswith(".")
    defaults = {field.name: field.default for field in dataclasses.fields(Config)}
    assert any(getattr(config, setting) != defaults[setting] for setting in recipe(name))


def test_an_unknown_recipe_is_one_sentence_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="recipe must be ppi or small-graph; got 'pip'"):
        recipe("pip")


def test_settings_override_a_recipe() -> None:
    graph = planted_graph()
    model = gs.train(graph, planted_split(graph), recipe="small-graph", dim=8, epochs=2)
    assert (model.about["config"]["dim"], model.about["config"]["whole_batches"]) == (8, 1)
    assert model.encoder.config.layer_norm
    with pytest.raises(ConfigError, match="a recipe or a config"):
        gs.train(graph, planted_split(graph), Config(), recipe="small-graph")
