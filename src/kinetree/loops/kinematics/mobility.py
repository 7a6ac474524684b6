"""Mobility: degrees of freedom, redundant constraints, over-constraint — RBDA §8.10.

Counting joints and loops gives the mobility of mechanisms whose constraints are independent. Others
move more freely than the count says, every planar linkage with hinges among them; and there are
mechanisms whose mobility depends on where they are. The rank of ``K`` knows.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from kinetree.algorithms.closed.constraints import velocity_rows
from kinetree.algorithms.closed.rank import rank_policy, scaling
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import warn
from kinetree.joints import Cylindrical, Revolute, SphereInCylinder, Spherical
from kinetree.joints.base import AbstractJoint
from kinetree.loops.kinematics.all_assemblies import assemblies_nearby, ranks
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.constraint import (
    constraint,
    dependencies,
    independent_rows,
    rank,
    velocity_matrix,
)
from kinetree.loops.kinematics.projection import project_configuration
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model


@dataclass(frozen=True)
class Replacement:
    """A joint that may replace a loop joint: it closes the loop with fewer constraints.

    The mechanism moves as before; the constraint forces that are left are those that are unique.
    """

    loop: str
    joint: AbstractJoint
    saved: int

    def __str__(self):
        kind = type(self.joint).__name__
        axis = getattr(self.joint, "axis", None)
        about = "" if axis is None else f" along {_axis(axis)}"
        return f"close loop {self.loop!r} by a {kind}{about}: {self.saved} constraints fewer"


@dataclass(frozen=True, repr=False)
class Mobility:
    """Mobility of a mechanism with loops and couplings in one configuration.

    Attributes:
        name: of the model.
        tree_dof: number of velocity variables of the spanning tree, ``n``.
        constraints: number of constraints that loops and couplings impose, ``nc``.
        rank: number of independent ones, ``r``.
        redundant: constraints that can be left out, one choice of ``nc - r`` of them.
        involved: all constraints that depend on others: the choice was among these.
        nearby: mobilities of assemblies close by, in ascending order; the mobility itself is among
            them unless it holds for an instant only.
        joint_dof: degrees of freedom of all joints, loop joints included.
        loops: number of loops.
        couplings: number of couplings.
        is_planar: whether all bodies move in parallel planes, by joints for such motion.
        replacements: loop joints that impose fewer constraints and allow the same motion.
        own: number of user-defined constraints, rows of ``ConstraintFunction``.
        position_dof: dimension of the set of configurations that are reached from here: the
            mobility, and one for each independent nonholonomic constraint — RBDA §3.4.
    """

    name: str
    tree_dof: int
    constraints: int
    rank: int
    redundant: tuple[str, ...]
    involved: tuple[str, ...]
    nearby: tuple[int, ...]
    joint_dof: int
    loops: int
    couplings: int
    is_planar: bool
    replacements: tuple[Replacement, ...]
    own: int
    position_dof: int

    @property
    def mobility(self) -> int:
        """Instantaneous mobility ``n - r`` — RBDA (8.52)."""
        return self.tree_dof - self.rank

    @property
    def redundancy(self) -> int:
        """Number of redundant constraints ``nc - r``, and of undetermined loop forces."""
        return self.constraints - self.rank

    @property
    def generic_mobility(self) -> int:
        """Smallest mobility among nearby assemblies."""
        return min(self.nearby, default=self.mobility)

    @property
    def is_variable(self) -> bool:
        """Whether nearby assemblies have a different mobility."""
        return any(m != self.mobility for m in self.nearby)

    @property
    def spatial_count(self) -> int:
        """Mobility by counting, six constraints per loop — RBDA (8.53)."""
        return self.joint_dof - 6 * self.loops - self.couplings - self.own

    @property
    def planar_count(self) -> int | None:
        """Mobility by counting, three constraints per loop — RBDA (8.54); None if not planar."""
        own = self.couplings + self.own
        return self.joint_dof - 3 * self.loops - own if self.is_planar else None

    def __getattr__(self, name: str):
        new = "tree_dof" if name == "freedoms" else name.replace("_freedoms", "_dof")
        if new == name:
            raise AttributeError(f"a Mobility has no attribute {name!r}")
        warn(f"Mobility.{name} is called Mobility.{new}", DeprecationWarning)
        return getattr(self, new)

    @property
    def corrected_count(self) -> int:
        """Spatial count plus redundant constraints — RBDA (8.55), equal to the mobility."""
        return self.spatial_count + self.redundancy

    def __repr__(self):
        lines = [
            f"{self.name}: mobility {self.mobility}",
            f"  {self.tree_dof} degrees of freedom of the tree - {self.rank} independent of "
            f"{self.constraints} constraints",
            f"  counting joints and loops: {self.joint_dof} - 6 * {self.loops}"
            f"{f' - {own}' if (own := self.couplings + self.own) else ''} = {self.spatial_count}"
            + (f", and {self.redundancy} redundant: {self.corrected_count}" * bool(self.redundancy))
            + (f"; in the plane {self.planar_count}" if self.is_planar else ""),
        ]
        if self.position_dof > self.mobility:
            count = self.position_dof
            lines.append(f"  nonholonomic: positions have {count} degrees of freedom")
        if self.is_variable:
            others = " or ".join(str(m) for m in self.nearby)
            lines.append(f"  only here: close by the mobility is {others}; a singular position")
        if self.redundant:
            many = "constraints" if self.redundancy > 1 else "constraint"
            lines.append(f"  over-constrained: {self.redundancy} redundant {many}, for example")
            lines += [f"    {name}" for name in self.redundant]
            if len(self.involved) > len(self.redundant):
                lines.append(f"    (a choice: {len(self.involved)} depend on each other)")
        lines += [f"  remedy: {replacement}" for replacement in self.replacements]
        return "\n".join(lines)


@on_host
def mobility(
    model: Model, q: ArrayLike | None = None, *, tolerance: float | None = None, seed: int = 0
) -> Mobility:
    """``Mobility`` of a mechanism at the configuration ``q`` and nearby.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (nq,), closed up to drift; by default where ``assemble`` ends.
        tolerance: singular values of the constraints below this times the largest count as zero.
        seed: of the random directions in which assemblies close by are looked for.

    Raises:
        AssemblyError: ``q`` is not close to an assembly.
    """
    if q is None:
        q = assemble(model)
    q = project_configuration(as_model(model), q, weights="plain", iterations=100)
    K, scale, rows = velocity_matrix(model, q), scaling(model), rows_of(model)
    of_positions = np.array(K)
    of_positions[velocity_rows(model)] = 0
    chosen = set(independent_rows(K, scale, tolerance=tolerance).tolist())
    touched = np.max(np.abs(dependencies(K, scale, tolerance=tolerance)), axis=0, initial=0.0)
    near = assemblies_nearby(model, q, seed)
    near_ranks = ranks(model, near)
    places = [q, *near[np.unique(near_ranks, return_index=True)[1]]]
    return Mobility(
        name=model.name,
        tree_dof=model.nv,
        constraints=len(rows),
        rank=len(chosen),
        redundant=tuple(str(row) for k, row in enumerate(rows) if k not in chosen),
        involved=tuple(str(row) for k, row in enumerate(rows) if touched[k] > 1e-6),
        nearby=tuple(sorted({model.nv - int(r) for r in near_ranks})),
        joint_dof=model.uncoupled.nv + sum(loop.joint.nv for loop in model.loops),
        loops=len(model.loops),
        couplings=len(model.couplings),
        is_planar=_is_planar(model, q),
        replacements=fewer_constraints(model, places) if len(chosen) < len(rows) else (),
        own=sum(c.rows for c in model.constraints),
        position_dof=model.nv - rank(of_positions, scale, tolerance=tolerance),
    )


@on_host
def mobilities(model: Model, q: ArrayLike, *, tolerance: float | None = None) -> np.ndarray:
    """Instantaneous mobility at each of the closed configurations ``q`` (..., nq): (...)."""
    q = as_configuration(as_model(model), q).astype(float)
    found = model.nv - ranks(model, q.reshape(prod(q.shape[:-1]), model.nq), tolerance=tolerance)
    return found.reshape(q.shape[:-1])


def _is_planar(model, q):
    """Whether all joints rotate about one direction, or translate across it."""
    X, S = joint_transforms(model, q)
    X_0 = base_transforms(model, X)
    motions = [X_0[i].inv_apply(S[i]) for i in range(1, model.body_count + 1)]
    for loop in model.loops:
        X_p = loop.predecessor_placement @ X_0[loop.predecessor]
        X_s = loop.successor_placement @ X_0[loop.successor]
        at = loop.joint.coordinates(X_s @ X_p.inverse())
        motions.append(X_s.inv_apply(loop.joint.motion_subspace(at)))
    columns = np.hstack([np.zeros((6, 0)), *(m.to_array().astype(float) for m in motions)])
    turns, shifts = columns[:3].T, columns[3:].T
    normals = np.linalg.svd(turns)[2] if len(turns) else np.eye(3)
    along = turns @ normals[0]
    flat = np.allclose(turns, np.outer(along, normals[0]), atol=1e-9)
    return bool(flat and np.any(turns) and np.allclose(shifts @ normals[0], 0, atol=1e-9))


# --- loop joints with fewer constraints: RBDA §8.10 ----------------------------------------------


def fewer_constraints(model, places) -> tuple[Replacement, ...]:
    """``Replacement`` of loop joints by ones with fewer constraints at unchanged ranks.

    Args:
        model: the mechanism.
        places: closed configurations, (nq,) each, in which the ranks are compared.
    """
    known = rank_policy(model)
    tolerance = max(1e-6, 10 * known.misalignment if known.is_known else 0.0)
    ranks, found = _ranks(model, places, tolerance), []
    for k, loop in enumerate(model.loops):
        for joint in _candidates(loop.joint):
            freer = replace(loop, joint=joint, limits=None, dynamics=None)  # fit for the old one
            loops = [*model.loops[:k], freer, *model.loops[k + 1 :]]
            other = model.replace(loops=loops)
            if _ranks(other, places, tolerance) == ranks:
                found.append(Replacement(loop.name, joint, joint.nv - loop.joint.nv))
                model = other
                break
    return tuple(found)


def _candidates(joint):
    """Joint types that allow all motions of a joint and more, fewest constraints first."""
    axes = (joint.axis,) if hasattr(joint, "axis") else "xyz"
    every = [
        *map(SphereInCylinder, axes), Spherical(), *map(Cylindrical, axes), *map(Revolute, axes)
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    places = [joint.transform(joint.random(rng)) for _ in range(3)]
    return [
        c
        for c in every
        if c.nv > joint.nv and all(np.max(np.abs(c.loop_error(X))) < 1e-12 for X in places)
    ]


def _ranks(model, places, tolerance):
    """Constraint ranks at several configurations."""
    rest, units = np.zeros(model.nv), scaling(model)
    return [rank(constraint(model, q, rest).K, units, tolerance=tolerance) for q in places]


def _axis(axis):
    """Text of an axis: "x", "y", "z", or its components."""
    aligned = np.flatnonzero(axis)
    return "xyz"[aligned[0]] if len(aligned) == 1 else f"({', '.join(f'{x:.3g}' for x in axis)})"
