"""Names and units of entries: kept with their model, and no longer than it."""

import gc
import weakref

import kinetree as kt
from kinetree.functional.layout import positions, velocities


def test_names_and_units_are_made_once_and_do_not_keep_the_model():
    model = kt.samples.panda().replace(name="of this test")
    assert positions(model) is positions(model)
    assert velocities(model) is velocities(model)
    assert [v.unit for v in velocities(model)][:2] == ["rad/s", "rad/s"]
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
