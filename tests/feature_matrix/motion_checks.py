"""What is required of simulations in general: a short step goes where Newton sends it."""

from contextlib import contextmanager

import numpy as np
import pytest
from feature_matrix.checks import max_of
from feature_matrix.loop_checks import smooth
from feature_matrix.walk import check

import kinetree as kt
from kinetree.control.shooting import Shooting

STEP = 1e-4

FEW_STAGES = "midpoint"
"""What is compiled here; ``option_cells`` has the others, as texts."""


def short(c):
    """A step that is short for the mechanism: small ones swing faster."""
    return STEP * min(1.0, np.sqrt(c.length))


def at_time(c, t):
    """The plain model with its prescribed joints where they are at a time."""
    prescribed = {
        b.joint_name: b.joint.at(t) for b in c.model.bodies if isinstance(b.joint, kt.Prescribed)
    }
    return c.model.replace(joint=prescribed) if prescribed else c.plain.at(t)


def step(c, tau):
    """``q`` and mean acceleration after a short time, by Heun's method and the reference."""
    import copy

    h = short(c)
    first = c.ref.accelerations(tau + smooth(c, c.ref))
    later = copy.copy(c)
    later.model = at_time(c, h)
    later.__dict__["plain"] = later.model
    q = c.ref.moved(c.q, c.qd + h / 2 * first, h)
    r = later.moving(q=q, qd=c.qd + h * first)
    return q, (first + r.accelerations(tau + smooth(later, r))) / 2


def went_there(f, c, q, qd, tau):
    """Require the state after the step."""
    expected, mean = step(c, tau) if not c.singular else (c.q, 0 * c.qd)
    f.same((np.asarray(qd) - c.qd) / short(c), mean, scale=max_of(mean, c.qd), tolerance=1e-5)
    f.same(q, expected, scale=max_of(expected, 1.0), tolerance=1e-7)


@check("simulate")
def _(f, c):
    f.makers = ("forward_dynamics",)
    options = {"duration": short(c), "dt": short(c), "integrator": FEW_STAGES}
    motion = f(c.model, c.q, c.qd, **options)
    went_there(f, c, motion.q[-1], motion.qd[-1], 0 * c.tau)
    f.holds(np.all(np.isfinite(motion.energy)), "energies")


@check("rollout")
def _(f, c):
    f.makers = ("forward_dynamics",)
    found = f(c.model, c.q, c.qd, c.tau, steps=1, dt=short(c), integrator=FEW_STAGES)
    went_there(f, c, np.asarray(found.q)[-1], np.asarray(found.qd)[-1], c.tau)


@check("final_state_derivatives")
def _(f, c):
    f.makers = ("forward_dynamics", "rollout")
    options = {"steps": 1, "dt": short(c), "integrator": "euler"}
    found = f(c.model, c.q, c.qd, c.tau, **options)
    y, e = c.ref.null @ (c.ref.null.T @ c.y), 1e-3
    ends = [
        np.asarray(kt.rollout(c.model, c.q, c.qd + s * y, c.tau, **options).qd)[-1] for s in (e, -e)
    ]
    n = c.ref.nv
    f.same(found.state[n:, n:] @ y, (ends[0] - ends[1]) / (2 * e), scale=1.0, tolerance=1e-6)


@check("rollout_gradient")
def _(f, c):
    f.makers = ("forward_dynamics", "rollout")

    @kt.kernel
    def terminal(m, q, qd):
        return (qd * qd).sum(-1) / 2

    options = {"steps": 1, "dt": short(c), "integrator": "euler"}
    found = f(c.model, c.q, c.qd, c.tau, terminal=terminal, **options)
    y, e = c.ref.null @ (c.ref.null.T @ c.y), 1e-3
    ends = [
        np.sum(np.asarray(kt.rollout(c.model, c.q, c.qd + s * y, c.tau, **options).qd)[-1] ** 2) / 2
        for s in (e, -e)
    ]
    f.same(found.qd0 @ y, (ends[0] - ends[1]) / (2 * e), scale=max_of(c.qd, 1.0), tolerance=1e-6)


@contextmanager
def derivatives_as_texts():
    """Derivatives of knots as they were traced: ``tests/control`` has them compiled."""

    def call(self, kernel, arrays, batch):
        given = zip(arrays, kernel.inputs, strict=True)
        found = kernel.reference([np.broadcast_to(x, (*batch, *a.shape)) for x, a in given])
        return found if isinstance(found, tuple) else (found,)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shooting, "_call", call)
        yield


@check("control.optimize")
def _(f, c):
    """The motion is the rollout of its forces, and forces beside them cost more."""
    f.makers = ("forward_dynamics", "rollout")
    cost, options = kt.control.QuadraticCost, {"steps": 2, "dt": short(c), "limits": None}
    free = dict.fromkeys(("effort_limits", "position_limits", "velocity_limits"))
    weight = short(c) ** -2
    with derivatives_as_texts():
        found = f(
            c.model, c.q, c.qd, running=cost(effort=1.0), terminal=cost(velocity=weight),
            tolerance=1e-9, **free, **options,
        )  # fmt: skip

    def rolled(tau):
        return kt.rollout(c.model, c.q, c.qd, tau, integrator="semi_implicit_euler", **options)

    def costs(tau):
        return (np.sum(tau**2) + weight * np.sum(np.asarray(rolled(tau).qd)[-1] ** 2)) / 2

    tau = np.asarray(found.tau)
    f.same(
        np.asarray(found.qd), np.asarray(rolled(tau).qd), scale=max_of(c.qd, 1.0), tolerance=1e-8
    )
    e = 1e-3 * max_of(tau) * np.stack([c.y, c.qdd]) / max_of(c.y, c.qdd, 1.0)
    gradient = (costs(tau + e) - costs(tau - e)) / 2
    bend = costs(tau + e) + costs(tau - e) - 2 * costs(tau)
    f.same(gradient, 0.0, scale=max_of(bend, 1e-9 * costs(tau)), tolerance=1e-2)


@check("sweep")
def _(f, c):
    found = f(c.model, lambda model, k: k * model.body_count, {"k": [1, 2]}, threads=1)
    f.same(np.asarray(found["result"]), np.array([1.0, 2.0]) * c.ref.count)
