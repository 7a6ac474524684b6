"""Height fields as shapes of a model."""

import numpy as np
import pytest
from support.contact_scenes import two_bodies

from kinetree.errors import InteropError, ModelError, ModelWarning
from kinetree.loaders import loads
from kinetree.model import Model
from kinetree.model.geometry import HeightField, Sphere
from kinetree.writers.mjcf import to_mjcf
from kinetree.writers.native import to_toml

FIELD = HeightField(((0.0, 0.1, 0.2), (0.3, 0.4, 0.5)), (1.0, 2.0))


def test_height_field_survives_plain_data():
    model = two_bodies(FIELD, Sphere(0.1), fixed=True)
    again = Model.from_dict(model.to_dict())
    assert again.geometry[0].shape == FIELD
    assert again.fingerprint == model.fingerprint


@pytest.mark.parametrize(
    ("heights", "size", "message"),
    [
        (((0.0, 1.0),), (1.0, 1.0), "heights of .* must be at least two rows of at least two"),
        (3.0, (1.0, 1.0), "must be at least two rows"),
        (((0.0, 1.0), (0.0, 1.0, 2.0)), (1.0, 1.0), r"rows of the same length, got \[2, 3\]"),
        (((0.0, 1.0), (0.0, "x")), (1.0, 1.0), "heights of .* must hold numbers, got 'x'"),
        (FIELD.heights, (1.0, 0.0), "size of .* must be positive, got 0"),
        (FIELD.heights, (1.0, 1.0, 1.0), "size of .* needs 2 numbers, got 3"),
    ],
)
def test_wrong_heights_are_named(heights, size, message):
    with pytest.raises(ModelError, match=message):
        two_bodies(HeightField(heights, size), Sphere(0.1), fixed=True)


def test_height_fields_in_files():
    model = two_bodies(FIELD, Sphere(0.1), fixed=True)
    with pytest.raises(InteropError, match=r"'a' is a height field.*save the model as JSON"):
        to_toml(model)
    with pytest.warns(ModelWarning, match="kept as a smooth surface through its heights"):
        again = loads(to_mjcf(model), "mjcf").geometry[0].shape
    assert isinstance(again, HeightField)
    np.testing.assert_allclose(again.heights, FIELD.heights, rtol=1e-6)  # MuJoCo has floats
    assert again.size == FIELD.size
