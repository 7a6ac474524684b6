"""Springs and dampers of tendons and of joints that close loops, as actuators without controls.

Lengths and arms of tendons over joints are constant combinations of these. Those of tendons through
space and of loop joints come from a kernel, where the step is in its middle: each velocity variable
of a loop joint is one spring.
"""

import numpy as np

from kinetree.codegen.procedures import procedure
from kinetree.contact.engine.actuator_tables import (
    Actuators,
    arms_that_occur,
    no_actuators,
    pairs_of,
    variables_of,
)
from kinetree.contact.engine.drives import add_force_across
from kinetree.contact.engine.parts import Parts
from kinetree.contact.engine.terms import springs_of_loops, springs_of_paths
from kinetree.model.limits import position_index


def springs_of(model, problem, kernel) -> Actuators:
    """``Actuators`` table of the springs and dampers of a model's tendons and loop joints.

    Args:
        model: the mechanism.
        problem: of its spanning tree with all joints.
        kernel: ``terms.moving_spring_kernel`` of the model.
    """
    full = model.uncoupled
    sums = [t for t in full.tendons if not t.path and t.has("stiffness", "damping")]
    paths = springs_of_paths(model)
    tendons = [*sums, *paths]
    arms = [_arms_of_tendon(full, t) for t in sums]
    arms += [[(i, 0.0) for i in variables_of(full, t)] for t in paths]
    bias = [(0.0, -t.stiffness, -t.damping) for t in tendons]
    if springs_of_loops(model):
        seen = arms_that_occur(full, kernel)[len(paths) :]
        arms += [[(i, 0.0) for i in np.flatnonzero(row)] for row in seen]
        bias += [law for loop in springs_of_loops(model) for law in _laws_of_loop(loop)]
    n, moving = len(arms), len(arms) - len(sums)
    if not n:
        return no_actuators(full.nv)
    first = np.cumsum([0, *map(len, arms)]).astype(np.int64)
    arm_v = np.array([i for own in arms for i, _ in own], dtype=np.int64)
    wide, zero = np.tile([-np.inf, np.inf], (n, 1)), (0.0,) * moving
    rest = [*(t.rest for t in tendons), *((0.0, 0.0) for _ in range(n - len(tendons)))]
    integers = {name: np.zeros(n, dtype=np.int64) for name in ("bound", "kind")}
    zeros = ("request", "stiff", "damp", "lead", "lag", "u", "time", "fall")
    return Actuators(
        count=n,
        nv=full.nv,
        acts=1,
        gain=np.zeros((n, 3)),
        muscle=np.zeros((n, 9)),
        bias=np.array(bias, dtype=float),
        control=wide,
        effort=wide,
        state=np.full(n, -1, dtype=np.int64),
        integral=np.full(n, -1, dtype=np.int64),
        offset=np.array([*(t.offset for t in sums), *zero], dtype=float),
        rest=np.array(rest, dtype=float).reshape(n, 2),
        arm_first=first,
        arm_v=arm_v,
        arm=np.array([c for own in arms for _, c in own], dtype=float),
        arm_q=position_index(full)[arm_v].astype(np.int64),
        moving=(np.arange(n) >= len(sums)).astype(np.int64),
        traced=moving,
        traced_of=np.arange(len(sums), n),
        length=np.zeros(moving),
        dense=np.zeros(moving * full.nv),
        most=np.full((full.nv, 2), [-np.inf, np.inf]),
        counts=np.zeros(full.nv, dtype=np.int64),
        compensation=np.zeros(full.nv),
        joint_bound=np.zeros(full.nv, dtype=np.int64),
        joint_force=np.zeros(full.nv),
        **pairs_of(problem, first, arm_v),
        **integers,
        **{name: np.zeros(n) for name in zeros},
    )


def _arms_of_tendon(full, t):
    """Velocity variables of a joint-sum tendon, each with its coefficient, ascending."""
    return sorted(zip((full.v_slice[i].start for i in t.joints), t.coefficients, strict=True))


def _laws_of_loop(loop):
    """Constant, stiffness and damping coefficients (0, -K, -D) of a loop joint's variables."""
    given = loop.dynamics
    K, D = (getattr(given, name) or (0.0,) * loop.joint.nv for name in ("stiffness", "damping"))
    return [(0.0, -k, -d) for k, d in zip(K, D, strict=True)]


@procedure
def add_springs(a: Actuators, force: "float[:]"):
    """Add the joint forces of tendon and loop springs at the start of the step."""
    for k in range(a.count):
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            force[a.arm_v[j]] += a.arm[j] * a.request[k]


@procedure
def cross(a: Parts) -> bool:
    """Whether actuators or springs couple variables that have no common entry in ``M``."""
    return a.springs.crosses == 1 or (a.drives.acts == 1 and a.drives.crosses == 1)


@procedure
def force_across(a: Parts):
    """Set ``across``: resisting forces of coupled arms that the matrix ``M`` lacks."""
    s = a.step
    s.across[: a.mechanism.nv] = 0.0
    if cross(a):
        add_force_across(a.drives, s.v_m, s.mean, s.across)
        add_force_across(a.springs, s.v_m, s.mean, s.across)
