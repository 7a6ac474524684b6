"""Memory of test processes: what models have compiled is let go, however old they are."""

import weakref

import numpy as np
from support import memory

import kinetree as kt
from kinetree.model.define import kernel_of

EARLY = kt.samples.pendulum()


def test_kernels_of_all_models_are_let_go():
    later, left = kt.samples.pendulum(), []
    for model in (EARLY, later):
        kt.mass_matrix(model, np.zeros(1))
        left.append(weakref.ref(kernel_of(model, "mass_matrix")))
    memory.let_go()
    assert [kernel() for kernel in left] == [None, None]
    assert kt.mass_matrix(EARLY, np.zeros(1)) == kt.mass_matrix(later, np.zeros(1))
