"""Steps of rollouts on a GPU, whose text is compiled for the CPU."""

import numpy as np

from kinetree.simulation.rollouts.rollout import run_of


def transition(contact, dtype="float64", **options):
    """The steps that a rollout on a GPU takes."""
    given = {"steps": 1, "dt": 2e-3, "contact": contact, "limits": None, **options}
    model = contact.scene.model
    start = model.neutral(), np.zeros(model.nv)
    return run_of(model, *start, dtype=dtype, on_device=True, **given).transition
