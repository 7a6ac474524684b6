"""Random closed mechanisms at an instant, under random joint forces."""

import numpy as np

from kinetree.loops.dynamics.methods import Instant
from kinetree.samples import random_closed_mechanism


def random_instant(seed, **options):
    """An ``Instant``; options are those of ``random_closed_mechanism``."""
    rng = np.random.default_rng(seed)
    model, q, qd = random_closed_mechanism(rng, **options)
    return Instant(model, q, qd, rng.standard_normal(model.nv))
