"""Cases of the GPU checks: the kernel whose registers they show is the one that rollouts launch."""

import sys

import numpy as np
import pytest
from support import fake_cupy

from kinetree.codegen.runtime.kernel import Kernel


class LaunchedError(BaseException):
    """Ends a rollout where it would compile for a device."""


@pytest.mark.parametrize("name", ["ball", "humanoid", "quadruped"])
def test_kernel_of_a_case_is_the_one_that_is_launched(name, monkeypatch):
    from gpu_checks import contact  # pyright: ignore[reportMissingImports]

    cupy, launched = fake_cupy.module(), []
    monkeypatch.setitem(sys.modules, "cupy", cupy)

    def on_device(kernel, dtype, device, samples=0):
        launched.append(kernel)
        raise LaunchedError

    monkeypatch.setattr(Kernel, "on_device", on_device)
    case = getattr(contact, name)()
    q, qd = case.states(2, 0.3, 5e-4, np.random.default_rng(2))
    with pytest.raises(LaunchedError):
        case.rollout(*(cupy.asarray(x.astype("float32")) for x in (q, qd)), steps=2)
    assert launched == [case.kernel("float32")[0]]
