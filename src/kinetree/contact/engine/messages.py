"""Warnings and errors of steps in words: not to be trusted, turning too far, without inertia."""

import numpy as np

from kinetree.contact.collision.tables import TRIANGLES
from kinetree.errors import SimulationWarning, warn

TURN = 1.0  # of a body in a step, beyond which its contacts are not those that were found [rad]
TURN_BY_MESH = 0.125  # the same beside triangles: 0.2 rad let a rod pass [rad]
EXPLODED = 1e9  # velocity that no step can be about [m/s or rad/s]


def warn_of_errors(engine) -> None:
    """Warn once of the first step whose solution is unreliable."""
    if engine.parts.warned or not engine.parts.counts[1]:
        return
    if not np.abs(engine.s.v).max() < EXPLODED:  # which is an error of its own
        return
    engine.parts.warned = 1
    warn(
        f"{first_untrusted_step(engine)}. Further ones are counted: report().unsolved, or "
        f"strict=True raises an error. Take shorter steps, or masses that differ less",
        SimulationWarning,
    )


def first_untrusted_step(engine) -> str:
    """Description of the first unreliable step: what failed, where and when."""
    p, n = engine.parts, engine.parts.counts
    parts = []
    if n[3]:
        parts.append(f"velocities at contacts miss their laws by {p.since[0]:.2g} m/s")
    if n[4]:
        i, j = p.worst[0]
        pair = f" of {engine.pair_name(int(i), int(j))!r}" if i >= 0 else ""
        parts.append(f"bodies overlap by {p.since[3]:.2g} m, the last ones{pair}")
    if n[5]:
        parts.append(f"contact has added {p.since[8]:.2g} J of energy")
    return (
        f"step {n[2]} of {engine.s.h:g} s of {engine.model.name!r} cannot be trusted: "
        f"{', '.join(parts)}"
    )


def warn_of_turning(engine) -> None:
    """Warn once of a body that rotates so far in a step that contacts may be missed."""
    s = engine.s
    if s.turn <= engine.parts.most_turn:
        return
    angle = float(np.sqrt(s.turn))
    sheets = TRIANGLES in engine.tables.shapes.kind
    advised = s.h * (TURN_BY_MESH if sheets else TURN / 2) / 2 / angle
    engine.parts.most_turn = np.inf
    warn(
        f"body {engine.tree.body_names[s.turner]!r} turns by {angle:.2g} rad in one step of "
        f"{s.h:g} s. Contacts are found once a step: what turns by more than {TURN:g} rad "
        f"({TURN_BY_MESH:g} rad beside triangle meshes, which are thin sheets) may be inside "
        f"others, or beyond a sheet, before it is seen. Take steps of "
        f"{advised:.1g} s, or thick shapes in place of sheets",
        SimulationWarning,
    )


def no_inertia(engine, k) -> str:
    """Error message for joint variable ``k``, which moves no inertia or is not finite."""
    model = engine.tree
    i = next(i for i, at in enumerate(model.v_slice) if i and at.start <= k < at.stop)
    if not np.isfinite(engine.s.q_m).all():
        return (
            f"joint {model.joint_names[i - 1]!r} does not stay finite in steps of "
            f"{engine.s.h:g} s: forces or velocities are too large"
        )
    return (
        f"TimeStepping divides by the inertia that joints move with loops open, and joint "
        f"{model.joint_names[i - 1]!r} moves none: give body {model.body_names[i]!r}, or a "
        f"body beyond it, mass away from the joint axis, or the joint armature"
    )
