"""Raw rows become features by the model's own recipes; what cannot be read is refused without being repeated."""

import numpy as np
import pytest

from graphsage.live.node_features import NodeFeatures, RowError, fingerprint
from small_service import columns, small_model


def test_rows_get_the_features_they_had_in_training() -> None:
    model, x = small_model()
    said = [{name: values[row] for name, values in columns().items()} for row in range(30)]
    made = NodeFeatures(model).features(said, [None] * 30)
    assert np.array_equal(np.stack([each for each in made if each is not None]), x)


def test_a_row_is_the_same_bits_alone() -> None:
    model, x = small_model()
    said = {name: values[7] for name, values in columns().items()}
    assert np.array_equal(NodeFeatures(model).features([said], [None])[0], x[7])


def test_ready_features_pass_and_rows_without_either_have_none() -> None:
    rows = NodeFeatures(small_model()[0])
    vector = [0.5] * rows.width
    made = rows.features([None, None, {"note": 1}], [vector, None, None])
    assert made[0] is not None
    assert made[0].tolist() == vector
    assert made[1:] == [None, None]


@pytest.mark.parametrize(
    ("attributes", "ready", "sentence"),
    [
        ({"words": "zebra"}, None, "attributes must have 'words' and 'size'"),
        ({"words": "zebra", "size": "zebra"}, None, "cannot read"),
        ({"words": ["zebra"], "size": 1}, None, "cannot read"),
        (None, [1.0], "must be 6 numbers"),
        (None, [1e39] * 6, "finite"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_place(attributes: object, ready: object, sentence: str) -> None:
    model, _ = small_model()
    good = {"words": "about logic", "size": 1}
    with pytest.raises(RowError, match=sentence) as caught:
        NodeFeatures(model).features([good, attributes], [None, ready])  # type: ignore[list-item]
    assert caught.value.row == 1
    assert "zebra" not in str(caught.value)


def test_the_fingerprint_tells_recipes_apart_not_weights() -> None:
    assert fingerprint(small_model(seed=0)[0]) == fingerprint(small_model(seed=1)[0])
    assert fingerprint(small_model()[0]) != fingerprint(small_model(features=None)[0])
