"""Random mechanisms of any size: trees, with regular ones for benchmarks, and closed loops.

A loop is closed by construction: the tree stands at a random configuration, the loop joint at
another, and the joint's place on the successor follows from both. Velocities are projected onto
those that the loops allow. Draws that cannot move, or are near a singularity, are thrown away.
"""

from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple, TypeAlias

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import ModelError, UnknownNameError
from kinetree.joints import (
    REPRESENTATIVES,
    AbstractJoint,
    Free,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from kinetree.model import Loop, Model, ModelBuilder
from kinetree.model.mechanism import reversed_joint
from kinetree.spatial import Inertia, Plucker, rotx, rotz, xlt
from kinetree.spatial.rotation import rotation_exp
from kinetree.spelling import did_you_mean

Rng: TypeAlias = "int | np.random.Generator | None"
"""A seed, or a generator of random numbers."""


def random_tree(
    bodies: int = 8,
    rng: Rng = None,
    *,
    joints: Sequence[AbstractJoint] | None = None,
    branching: float = 0.5,
    floating_base: bool = False,
) -> Model:
    """A random kinematic tree with random geometry and inertias.

    Args:
        bodies: number of moving bodies.
        rng: a NumPy random generator or a seed.
        joints: kinds to draw from, as joint instances; by default every kind there is.
        branching: chance that a body does not continue the chain of the one before it.
        floating_base: connect the first body to the base by a free joint.
    """
    check_count(bodies, "random_tree")
    rng = np.random.default_rng(rng)
    kinds = REPRESENTATIVES if joints is None else tuple(joints)
    builder = ModelBuilder(f"random_tree({bodies})")
    names = ["base"]
    for i in range(1, bodies + 1):
        on = names[rng.integers(len(names))] if rng.random() < branching else names[-1]
        joint = Free() if floating_base and i == 1 else kinds[rng.integers(len(kinds))]
        at, inertia = random_placement(rng), random_inertia(rng)
        names.append(f"body{i}")
        builder.body(names[-1], on=on, joint=joint, at=at, inertia=inertia)
    return builder.build()


def check_count(bodies, what):
    """Raise ModelError unless ``bodies`` is a valid number of bodies."""
    if not isinstance(bodies, (int, np.integer)) or bodies < 0:
        raise ModelError(f"{what} needs a number of bodies, 0 or more, got {bodies!r}")


def random_placement(rng: "np.random.Generator") -> Plucker:
    """Random placement: rotation, and shift of about half a metre."""
    return Plucker(rotation_exp(rng.standard_normal(3)), 0.5 * rng.standard_normal(3))


def random_inertia(rng: "np.random.Generator", points: int = 6) -> Inertia:
    """Random physically possible inertia of a few kilograms, from point masses."""
    total = Inertia.zero()
    for _ in range(points):
        mass, position = rng.uniform(0.1, 1.0), 0.3 * rng.standard_normal(3)
        total = total + Inertia.from_mass_center(mass, position, np.zeros((3, 3)))
    return total


def chain(n: int) -> Model:
    """The book's reference chain of ``n`` revolute joints — RBDA §10.3.

    Unbranched, each link with general inertia and with general Denavit–Hartenberg geometry; the
    same every time.
    """
    rng = np.random.default_rng(2008)
    check_count(n, "chain")
    builder = ModelBuilder(f"chain({n})")
    parent = None
    for i in range(1, n + 1):
        a, d, alpha = rng.uniform(0.2, 0.6), rng.uniform(-0.3, 0.3), rng.uniform(0.4, 1.2)
        at = rotx(alpha) if i == 1 else xlt(0, 0, d) @ rotx(alpha) @ xlt(a, 0, 0)
        name = f"link{i}"
        builder.body(name, on=parent, joint=Revolute("z"), at=at, inertia=random_inertia(rng))
        parent = name
    return builder.build()


def tree(bodies: int, branching: float = 2, skew: float = 0.4, taper: float = 0.9) -> Model:
    """A tree of revolute joints in which bodies have ``branching`` children, up to ``bodies``.

    Args:
        bodies: number of moving bodies.
        branching: children of each body; 1 for a chain, 1.5 for one and two in turn.
        skew: angle between successive joint axes [rad]; 0 makes the tree planar.
        taper: size of a body relative to its parent.
    """
    check_count(bodies, "tree")
    builder = ModelBuilder(f"tree({bodies}, {branching})")
    size = [1.0]
    for i in range(1, bodies + 1):
        parent = floor((i - 2 + ceil(branching)) / branching)
        size.append(1.0 if parent == 0 else taper * size[parent])
        at = rotx(skew) @ xlt(size[parent], 0, 0) if parent else None
        # Thin cylinders, a twentieth of the length in radius, with the density of the first.
        mass, across = size[i] ** 3, size[i] ** 2
        I_C = mass * across * np.diag([0.00125, 1.0075 / 12, 1.0075 / 12])
        inertia = Inertia.from_mass_center(mass, [size[i] / 2, 0, 0], I_C)
        on = f"body{parent}" if parent else None
        builder.body(f"body{i}", on=on, joint=Revolute("z"), at=at, inertia=inertia)
    return builder.build()


LOOP_JOINTS: tuple[AbstractJoint, ...] = tuple(j for j in REPRESENTATIVES if j.nv < 6)
"""Joints that can close a loop: one or more of every kind that constrains something."""

LINKAGE_KINDS = ("spatial", "planar", "spherical", "doubled")
"""General; with parallel axes, or with axes that meet in a point, which leaves three constraints of
every loop redundant; and with every loop closed twice, by the same joint one way and the other."""

_ATTEMPTS = 60
_DISTANCE = 0.03  # smallest singular value of the constraints, of size one, that will do


class ClosedMechanism(NamedTuple):
    """A model with loops, and a state in which they are closed."""

    model: Model
    q: np.ndarray
    """Position variables of the tree joints, (nq,)."""
    qd: np.ndarray
    """Velocity variables that the loops allow, (nv,)."""


def random_closed_mechanism(
    rng: Rng = None,
    *,
    kind: str | None = None,
    bodies: int | None = None,
    loops: int | None = None,
    loop_joints: Sequence[AbstractJoint] | None = None,
) -> ClosedMechanism:
    """A random mechanism with loops, and a consistent state of it.

    Args:
        rng: a NumPy random generator or a seed.
        kind: one of ``LINKAGE_KINDS``; any of them by default.
        bodies: number of moving bodies, at least 2; three to six by default.
        loops: number of loops, at least 1; one or two by default, one for up to four bodies.
        loop_joints: what to close them with, as joint instances; by default every kind there is
            that leaves the mechanism a freedom. Planar and spherical linkages have revolute joints.
    """
    rng = np.random.default_rng(rng)
    kind = LINKAGE_KINDS[rng.integers(len(LINKAGE_KINDS))] if kind is None else kind
    if kind not in LINKAGE_KINDS:
        hint = did_you_mean(kind, LINKAGE_KINDS, f"there are {', '.join(LINKAGE_KINDS)}")
        raise UnknownNameError(f"no kind of linkage is called {kind!r}; {hint}")
    bodies = int(rng.integers(3, 7)) if bodies is None else bodies
    loops = int(rng.integers(1, 3 if bodies > 4 else 2)) if loops is None else loops
    check_count(bodies, "random_closed_mechanism")
    if bodies < 2 or loops < 1:
        raise ModelError(
            f"random_closed_mechanism needs two bodies and a loop at least, got {bodies} and "
            f"{loops}; random_tree makes mechanisms without loops"
        )
    for _ in range(_ATTEMPTS):
        tree = _spanning_tree(rng, kind, bodies)
        q = tree.random_configuration(rng)
        model = _close(rng, tree, q, kind, loops, loop_joints)
        qd, distance = _allowed_velocity(rng, model, q)
        if distance > _DISTANCE:
            return ClosedMechanism(model, q, qd)
    raise ModelError(
        f"none of {_ATTEMPTS} {kind} linkages of {bodies} bodies and {loops} loops could move; "
        f"use more bodies, fewer loops or looser loop joints"
    )


def _spanning_tree(rng, kind, bodies):
    """Random spanning tree of a mechanism, mostly a chain; planar or spherical by ``kind``."""
    builder = ModelBuilder(f"random linkage, {kind}", gravity=5 * rng.standard_normal(3))
    names = ["base"]
    for i in range(1, bodies + 1):
        on = names[rng.integers(len(names))] if rng.random() < 0.3 else names[-1]
        names.append(f"body{i}")
        builder.body(
            names[-1],
            on=on,
            joint=_tree_joint(rng, kind),
            at=_placement(rng, kind),
            inertia=random_inertia(rng),
        )
    return builder.build()


def _tree_joint(rng, kind):
    """Random tree joint for a kind of mechanism: planar, spherical or spatial."""
    if kind == "spherical":
        return Revolute("z")
    if kind == "planar":
        return Revolute("z") if rng.random() < 0.8 else Prismatic("xy"[rng.integers(2)])
    kinds = (Revolute("x"), Revolute("z"), Prismatic("y"), Universal("xy"), Spherical())
    return kinds[rng.integers(len(kinds))]


def _placement(rng, kind):
    """Random joint placement for a kind of mechanism."""
    if kind == "planar":
        return rotz(rng.uniform(-3, 3)) @ xlt(*(0.5 * rng.standard_normal(3)))
    general = random_placement(rng)
    return Plucker(general.E, np.zeros(3)) if kind == "spherical" else general


def _close(rng, tree, q, kind, count, loop_joints):
    """Model with ``count`` random loops that are closed at ``q``."""
    X_0 = base_transforms(tree, joint_transforms(tree, q)[0])
    loops, freedom = [], tree.nv
    for n in range(1, count + 1):
        p, s = _ends(rng, tree)
        joint = _loop_joint(rng, kind, freedom - 1, loop_joints)
        freedom -= 6 - joint.nv
        loop = closed_loop(X_0, f"loop{n}", (p, s), joint, joint.random(rng), _placement(rng, kind))
        loops.append(loop)
        if kind == "doubled":
            swapped = loop.successor_placement, loop.predecessor_placement
            loops.append(Loop(f"again{n}", s, p, reversed_joint(joint), *swapped))
    return tree.replace(loops=tuple(loops))


def closed_loop(X_0, name, ends, joint, position, X_P) -> Loop:
    """Loop joint that is at ``position`` when the bodies have the transforms ``X_0``.

    Args:
        X_0: transforms from base to body coordinates, entry 0 for the base.
        name: of the joint.
        ends: numbers of predecessor and successor.
        joint: its kind.
        position: its position variables.
        X_P: its place on the predecessor.
    """
    p, s = ends
    X_S = joint.transform(position) @ X_P @ X_0[p] @ X_0[s].inverse()
    return Loop(name, p, s, joint, X_P, X_S)


def _ends(rng, tree):
    """Two random bodies (or body and base) with at least three joints between, if possible."""
    pairs = [(p, s) for p in range(tree.body_count + 1) for s in range(tree.body_count + 1)]
    between = {(p, s): len({*tree.support[p]} ^ {*tree.support[s]}) for p, s in pairs}
    most = min(3, max(between.values()))
    far = [pair for pair, joints in between.items() if joints >= most]
    return far[rng.integers(len(far))]


def _loop_joint(rng, kind, room, loop_joints):
    """Random loop joint that leaves the mechanism movable."""
    if kind in ("planar", "spherical"):
        return Revolute("z")
    if loop_joints is None:
        loosest = min(6 - j.nv for j in LOOP_JOINTS)
        loop_joints = [j for j in LOOP_JOINTS if 6 - j.nv <= max(room, loosest)]
    return loop_joints[rng.integers(len(loop_joints))]


def _allowed_velocity(rng, model, q):
    """Random velocity that the loops allow, and the distance of ``q`` from singularity.

    The distance is the smallest singular value of the independent constraints, all rows of which
    are scaled to one in the norm of the kinetic energy.
    """
    K = loop_constraints(model, q, model.zero_velocity).K
    L = np.linalg.cholesky(crba.joint_space_inertia(model, q))
    Y = np.linalg.solve(L, K.T)
    Y = Y / np.maximum(np.linalg.norm(Y, axis=0), 1e-9)
    s = np.linalg.svd(Y, compute_uv=False)
    rank = int(np.sum(s > 1e-9))
    null = np.linalg.svd(K)[2][rank:]
    return null.T @ (null @ rng.standard_normal(model.nv)), s[rank - 1] if len(null) else 0.0
