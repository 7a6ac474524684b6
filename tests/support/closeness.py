"""How close is close: in units of rounding error, scaled by the size of the numbers."""

import numpy as np

EPS = np.finfo(float).eps


def assert_close(actual, expected, *, ulps=100.0, scale=None, condition=1.0):
    """Largest difference at most ``ulps * eps * condition`` times the size of the numbers."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    if actual.size == 0:
        return
    if scale is None:
        scale = max(np.max(np.abs(actual)), np.max(np.abs(expected)), np.finfo(float).tiny)
    error = float(np.max(np.abs(actual - expected)))
    bound = ulps * EPS * float(condition) * float(scale)
    assert error <= bound, (
        f"error {error:.3g} exceeds {bound:.3g} = {ulps} ulp x {condition:.3g} x {scale:.3g}"
    )


def assert_agree(actual, expected, *, relative=1e-10, scale=0.0):
    """To 1e-10 of the largest number, or of ``scale`` if that is larger."""
    scale = max(np.max(np.abs(expected)), scale)
    assert np.max(np.abs(actual - expected)) <= relative * scale
