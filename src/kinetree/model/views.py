"""One model in other algebras: dense 6×6 matrices, planar vectors, axial screws — RBDA §A.1–A.4.

Algorithms take a view like a model, but its transforms, inertias and vectors are of
another kind. The same algorithm text then computes the same numbers in another way.
"""

from copy import copy

import numpy as np

from kinetree.arguments import guard_module
from kinetree.errors import ModelError
from kinetree.spatial import Inertia, Plucker, dense
from kinetree.spatial.arithmetic import AxialRotation
from kinetree.spatial.axial_screw import AxialScrew
from kinetree.spatial.planar_inertia import restrict

__all__ = ["AxialView", "ModelView", "axial_view", "dense_view", "planar_view"]


class ModelView:
    """A model whose spatial quantities pass through ``convert`` on their way out."""

    def __init__(self, model, convert):
        self.model, self.convert = model, convert
        self.tree_transform = (None, *map(convert, model.tree_transform[1:]))
        self.inertia = tuple(None if I is None else convert(I) for I in model.inertia)
        self.zero_motion, self.a_g = convert(model.zero_motion), convert(model.a_g)
        self.identity_transform = convert(model.identity_transform)

    def jcalc(self, i, q, qd):
        """Transform, axes, velocity and velocity product of joint ``i``, converted."""
        return tuple(map(self.convert, self.model.jcalc(i, q, qd)))

    @property
    def uncoupled(self):
        """View of the model without couplings."""
        if not self.couplings:
            return self
        view = copy(self)
        view.model = self.model.uncoupled
        return view

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "model"), name)

    def __repr__(self):
        return f"{type(self).__name__}({self.model!r})"


# --- dense ---------------------------------------------------------------------------------------


class DenseTransform(np.ndarray):
    """A dense 6×6 motion transform that can tell its force transform; else a plain array."""

    @property
    def T(self):
        """Transpose of the transform, as a plain array."""
        return np.asarray(self).T

    @property
    def star(self):
        """Transform ``X*`` of forces, as a plain array."""
        return dense.force_transform(np.asarray(self))

    def __matmul__(self, other):
        product = np.asarray(self) @ np.asarray(other)
        return product.view(DenseTransform) if isinstance(other, DenseTransform) else product

    def __rmatmul__(self, other):
        return other @ np.asarray(self)


def dense_view(model) -> ModelView:
    """View of the model with plain NumPy arrays: 6×6 transforms and inertias, 6-vectors."""
    return ModelView(model, _dense)


def _dense(x):
    """Spatial transform, inertia or vector as a dense array."""
    if isinstance(x, Plucker):
        return x.to_matrix().view(DenseTransform)
    return x.to_matrix() if isinstance(x, Inertia) else x.to_array()


# --- planar --------------------------------------------------------------------------------------


def planar_view(model) -> ModelView:
    """View of a planar mechanism with planar vectors of three coordinates — RBDA §2.16.

    Every joint must move its body in the x-y plane and every placement turn about z (to within
    rounding); shifts along z and the gravity across the plane play no part.
    """
    rng = np.random.default_rng(0)
    for i in range(1, model.body_count + 1):
        joint, X_T = model.joint[i], model.tree_transform[i]
        X_J, S, _, c_J = joint.jcalc(joint.random(rng), rng.uniform(-1, 1, joint.nv))
        if not all(_in_plane(x) for x in (X_J, S, c_J)):
            problem = f"moves bodies out of the x-y plane: {joint}"
        elif not _in_plane(X_T):
            problem = "sits on a placement that does not just turn about z"
        else:
            continue
        raise ModelError(
            f"model {model.name!r} is not planar: joint {model.joint_names[i - 1]!r} {problem}. "
            f"Use the model itself, or choose frames in which all motion is in the x-y plane"
        )
    return ModelView(model, restrict)


def _in_plane(x):
    """Whether a transform, or motions, stay within the x-y plane."""
    if isinstance(x, Plucker):
        return _small(*x.E[2, :2], *x.E[:2, 2], x.E[2, 2] - 1)
    return _small(x.angular[:2], x.linear[2])


def _small(*numbers):
    """Whether numbers of order one are zero up to rounding."""
    return all(np.all(np.abs(x) <= 64 * np.finfo(float).eps) for x in numbers)


# --- axial rotations -----------------------------------------------------------------------------


class AxialView(ModelView):
    """A model whose turns about coordinate axes and placements are applied one by one."""

    def __init__(self, model):
        super().__init__(model, _identity)
        self.tree_transform = (None, *map(snap, model.tree_transform[1:]))

    def jcalc(self, i, q, qd):
        """Transform, axes, velocity, velocity product of joint ``i``, as axial screws."""
        X_J, S, v_J, c_J = self.model.jcalc(i, q, qd)
        return _as_screw(X_J), S, v_J, c_J


def _identity(x):
    """The argument unchanged: a view without a change."""
    return x


def axial_view(model) -> ModelView:
    """View of the model whose axial transforms cost less on inertias — RBDA §A.4.

    Joints about or along x, y or z give axial screws; placements that only shift, or turn by right
    angles, cost next to nothing. Any model can be viewed so; others gain nothing.
    """
    return model if model.is_general else AxialView(model)


def _as_screw(X):
    """Axial screw equal to ``X`` if its zeros and ones show that it is one, else ``X``."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        zeros = (X.E[i, k], X.E[j, k], X.E[k, i], X.E[k, j], X.r[i], X.r[j])
        if _is_number(X.E[k, k], 1) and all(_is_number(x, 0) for x in zeros):
            turn = AxialRotation.from_cosine_sine(k, X.E[i, i], X.E[i, j])
            return X if _is_number(X.E[i, i], 1) else AxialScrew(turn, X.r[k])
    return X


def _is_number(x, value):
    """Whether ``x`` is a plain number equal to ``value``."""
    return isinstance(x, (int, float, np.number)) and x == value


def snap(X):
    """Transform with entries within rounding of 0 and ±1 set to these, such as cos(π/2)."""
    if X.E.dtype == object or X.r.dtype == object:
        return X
    E = np.where(np.abs(X.E) <= _ROUNDING, 0.0, X.E)
    E = np.where(np.abs(np.abs(E) - 1) <= _ROUNDING, np.sign(E), E)
    return Plucker(E, np.where(np.abs(X.r) <= _ROUNDING * np.max(np.abs(X.r)), 0.0, X.r))


_ROUNDING = 8 * np.finfo(float).eps


# --- inertia moved towards the base: the same equation of motion — RBDA §9.7 ---------------------
# Part of a body's inertia can move to its parent without any change in the equation of motion:
# what the joint cannot accelerate by itself (``I_Δ S = 0``) and what looks the same from the
# parent in every position of the joint. ``condensed_view`` moves as much as possible towards the
# base. The zeros it leaves behind make generated code shorter; forces inside the mechanism and
# inertias of single bodies are no longer the real ones.


def condensed_view(model) -> ModelView:
    """View of the model with inertia moved from bodies to parents where dynamics stay equal.

    Entry 0 of its ``inertia`` is what has come to rest in the base.
    """
    if isinstance(model, _WithInertia) or model.is_general:
        return uncondensed_view(model)
    return _WithInertia(model, lumped_inertias(model))


def uncondensed_view(model) -> ModelView:
    """View of the model that ``condensed_view`` leaves unchanged.

    Where many numbers are zero from the start, moving inertia can cost operations.
    """
    if isinstance(model, _WithInertia) or model.is_general:
        return model
    return _WithInertia(model, [Inertia.zero(), *model.inertia[1:]])


def lumped_inertias(model):
    """Inertias of base and bodies after moving parts to parents, leaves first — RBDA §9.7.

    ``joint.movable_inertia`` is in the joint's coordinates and goes to the parent by ``X_T``,
    which the printed loop leaves out.
    """
    inertia = list(model.inertia)
    inertia[0] = Inertia.zero()
    for i in range(model.body_count, 0, -1):
        part = model.bodies[i - 1].joint.movable_inertia(inertia[i])
        if part is None:
            continue
        p, X_T = model.parent[i], model.tree_transform[i]
        inertia[i] = inertia[i] - part
        inertia[p] = inertia[p] + X_T.inv_apply(part)
    return inertia


class _WithInertia(ModelView):
    """A model with other inertias, and placements free of rounding errors."""

    def __init__(self, model, inertia):
        super().__init__(model, lambda x: x)
        self.inertia = tuple(inertia)
        self.tree_transform = (None, *map(snap, model.tree_transform[1:]))


guard_module(__name__)
