"""Options of ``simulate`` and ``rollout`` × features of models: the right motion, or a named error.

A short step has to end where the accelerations of the reference lead, whatever computes it: the
integrator, what keeps loops closed, a controller, forces on bodies, contact with nothing, events.
``make test`` takes a mechanism of each family; ``make fuzz`` all of them.
"""

import numpy as np
import pytest
from feature_matrix.features import FEATURES, case
from feature_matrix.loop_checks import smooth
from feature_matrix.motion_checks import STEP
from feature_matrix.walk import Asked, require_named
from hypothesis import settings

import kinetree as kt
from kinetree.errors import KinetreeError
from kinetree.simulation import INTEGRATORS

FAMILIES = ("loop with springs", "differential", "prescribed joint", "zero freedoms", "own joint")
ALL = settings.default is not None and settings.default.max_examples > 1000


def pushed(c):
    """A force on the last body, and what it comes to."""
    force = np.concatenate([c.point, c.vector]) * c.force
    f_ext = np.zeros((c.ref.count, 6))
    if c.ref.count:
        f_ext[-1] = force
    return {"forces": [kt.ExternalForce(c.plain.body_names[-1], force)]}, f_ext


OPTIONS = {
    **{f"integrator {name}": {"integrator": name} for name in INTEGRATORS},
    "adaptive steps": {"integrator": "dopri5", "rtol": 1e-9, "atol": 1e-12},
    "projection": {"constraints": kt.Projection()},
    "generalized alpha": {"constraints": kt.GeneralizedAlpha()},
    "charts": {"constraints": kt.Charts()},
    "Baumgarte": {"constraints": kt.Baumgarte()},
    "rigid limits": {"limits": kt.RigidLimits()},
    "no friction": {"friction": None},
    "exact friction": {"friction": kt.Friction(exact=True)},
    "an event": {"events": [kt.Event(lambda t, q, qd: t - STEP / 2)]},
    "store every": {"store_every": 2},
    "a controller": "controller",
    "a sampled controller": "sampled",
    "forces on bodies": "forces",
}


def arguments(option, c):
    """Options of ``simulate``, joint forces and forces on bodies that belong to them."""
    given = OPTIONS[option]
    if given == "forces":
        options, f_ext = pushed(c)
        return options, 0 * c.tau, f_ext
    if given in ("controller", "sampled"):
        law = lambda t, q, qd: c.tau  # noqa: E731
        law = law if given == "controller" else kt.Sampled(law, 1 / STEP)
        return {"controller": law}, c.tau, None
    return given, 0 * c.tau, None


@pytest.mark.parametrize("feature", FEATURES if ALL else FAMILIES)
def test_motion_honours_what_a_model_has_or_says_that_it_does_not(feature):
    c, failures = case(feature), []
    for option in OPTIONS:
        options, tau, f_ext = arguments(option, c)
        asked = Asked("simulate", kt.simulate, c)
        try:
            motion = asked(c.model, c.q, c.qd, duration=STEP, dt=STEP, **options)
            passive = 0 * c.tau if option == "no friction" else None
            follows(asked, c, motion, tau, f_ext, passive)
        except KinetreeError as error:
            named(failures, option, c, error)
        except AssertionError as failure:
            failures.append(f"{option}: {failure}")
        except Exception as error:  # of another library
            failures.append(f"{option} of {feature}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)


def named(failures, option, c, error):
    try:
        require_named("simulate", c, error, (*option.split(), "forward_dynamics", "constraints"))
    except AssertionError as failure:
        failures.append(f"{option}: {failure}")


def follows(f, c, motion, tau, f_ext, passive):
    """The mean acceleration of the step is that of the reference, to the first order."""
    if c.singular:
        return
    if passive is None:
        passive = smooth(c, c.ref)
    elif any(p.dynamics for p in (*c.plain.bodies, *c.plain.loops)):
        return  # springs and dampers without friction: the other options have them
    mean = c.ref.accelerations(tau + passive, f_ext)
    found = (np.asarray(motion.qd[-1]) - c.qd) / STEP
    size = max(np.max(np.abs(mean), initial=0.0), 1.0)
    f.same(found, mean, scale=size, tolerance=2e-2)
    f.holds(np.all(np.isfinite(motion.energy)), "energies")
    f.holds(np.max(np.abs(motion.loop_error), initial=0.0) < 1e-8, "loops stay closed")
