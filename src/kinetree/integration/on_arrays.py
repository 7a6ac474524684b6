"""Steps on arrays: the text of a step in Python, on what code for every robot computes.

A step that is one kernel is compiled for its robot, which takes a large one longer than a few
thousand steps. On arrays the same text of the integrator runs in Python: dynamics and their
derivatives are general code, which is there at once, the forces of the joints one short kernel, and
the rest is NumPy's. Both agree to rounding errors; ``choose_arrays`` goes by the amount of work,
as tiers do.
"""

from functools import cached_property
from typing import Any

import numpy as np

from kinetree.algorithms import ltl
from kinetree.codegen.tiers import TierChoice
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import vjp
from kinetree.integration.field import Field, times, too_stiff
from kinetree.integration.manifold import bracket_matrix, dexp, is_flat
from kinetree.model.limits import has_passive_forces
from kinetree.model.memo import remember
from kinetree.quantities import dynamics

LARGE = 24, 12
"""Velocity variables from which compiling a step takes so long that steps on arrays pay: of
explicit and of implicit methods."""
LARGE_BACK = 12, 1
"""The same for the gradients of a step."""
LARGE_LOOPS = 6
"""The same for steps of mechanisms with loops; their gradients are always worth it."""
REPAID = 100
"""Steps × worlds that repay it, for each velocity variable."""
REPAID_BACK = 400
"""The same for the gradients of a step."""


def choose_arrays(
    model, method, field, samples: int = 0, *, back: bool = False, longer: int = 1
) -> bool:
    """Whether a simulation's steps should run vectorised on arrays rather than be compiled.

    Args:
        model: the mechanism.
        method: the integrator.
        field: gives its accelerations.
        samples: steps × worlds, where no task says how many there are.
        back: whether it is about gradients of a step.
        longer: how many times as long as others its step takes to compile.
    """
    large = (LARGE_BACK if back else LARGE)[method.differentiates]
    if model.is_constrained:
        large, known = 1 if back else LARGE_LOOPS, _is_constrained(model, field)
    else:
        known = type(field) is Field
    if not known or not method.on_arrays or longer * model.nv < large:
        return False
    needs_rates = getattr(method, "inner", method).arrays_need_rates
    if needs_rates and (model.is_constrained or not is_flat(model)):
        return False
    if model.scalar_type().kind != "f" or not _is_group(model):
        return False
    many = (REPAID_BACK if back else REPAID) * model.nv
    choice = remember(model, ("steps on arrays", method, back), lambda: TierChoice(many))
    return choice.tier_for(samples) == "general"


def _is_constrained(model, field):
    """Whether a field with constraints has a vectorised form for the model."""
    return hasattr(field, "has_arrays") and field.has_arrays(model)


def field_on_arrays(model, field) -> "FieldOnArrays":
    """Vectorised form of a field for which ``choose_arrays`` holds."""
    return field.on_arrays(model) if _is_constrained(model, field) else FieldOnArrays(model, field)


def _is_group(model):
    """Whether ``dexp`` is known for all joints of a model."""
    return all(joint.rates_are_velocities or joint.bracket for joint in model.joint[1:])


class FieldOnArrays:
    """A ``Field`` of one model on arrays with any batch axes, by compiled parts.

    Args:
        model: the mechanism.
        field: the field, whose forces can be traced.
    """

    is_called = False

    def __init__(self, model, field):
        self._model, self._field = model, field

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "_field"), name)

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        total = self.joint_force(model, t, q, qd, tau)
        return dynamics.forward_dynamics(model, q, qd, total), (total * qd).sum(-1)

    def joint_force(self, model, t, q, qd, tau):
        """All joint forces, (..., nv), from the inputs ``tau`` held in a step."""
        return tau if self.is_given else self._forces.call(_number(t), q, qd, tau)

    def derivatives(self, t, q, qd, tau) -> tuple[Any, Any, Any]:
        """Derivatives of the joint forces by positions, velocities and time."""
        if self.is_given:
            zero = np.zeros(model_shape(self._model, q))
            return zero, zero, zero[..., 0]
        return self._derivatives.call(_number(t), q, qd, tau)

    def power_derivatives(self, t, q, qd, tau) -> tuple[Any, Any, Any]:
        """Derivatives of the joint forces' power by positions, velocities and time."""
        f_q, f_v, f_t = self.derivatives(t, q, qd, tau)
        force = self.joint_force(self._model, t, q, qd, tau)
        by_q, by_v = ((qd[..., None] * f).sum(-2) for f in (f_q, f_v))
        return by_q, by_v + force, (f_t * qd).sum(-1)

    def through_derivatives(self, state, weights) -> tuple[Any, Any]:
        """Gradients by positions and velocities from those by stiffness and damping.

        Args:
            state: ``t, q, qd, tau``.
            weights: gradients by ``opposing`` of the derivatives with respect to both.
        """
        t, q, qd, tau = state
        if self.is_given:
            return 0 * qd, 0 * qd
        F = self.derivatives(t, q, qd, tau)[:2]
        pairs = zip(weights, F, strict=True)
        cotangent = *(_through_opposing(w, D) for w, D in pairs), np.zeros(weights[0].shape[:-1])
        lead = cotangent[0].shape[:-2]
        q, qd, tau = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (q, qd, tau))
        return self._curvature.call(_number(t), q, qd, tau, *cotangent)

    def pulled_back(self, state, qdd, weight) -> tuple[Any, Any, Any]:
        """Reverse mode of the accelerations: gradients by joint forces and state.

        Args:
            state: ``t, q, qd, tau``.
            qdd: accelerations there.
            weight: gradients by these, with any axes before those of the state.
        """
        t, q, qd, tau = state
        F_q, F_v, H, _ = motion_derivatives(self, self._model, t, q, qd, qdd, tau)
        w = solve_each(H, weight)
        return w, -transposed_times(F_q, w), -transposed_times(F_v, w)

    def response(self, model, q, M):
        """Function of accelerations per force; see ``Field.response``."""
        try:
            np.linalg.cholesky(M)
        except np.linalg.LinAlgError:  # of which sample and joint, its factors say
            for matrix in M.reshape(-1, model.nv, model.nv):
                ltl.ltdl(matrix, ltl.dense(model.nv), too_stiff)
        return lambda f, given: np.linalg.solve(M, f[..., None])[..., 0]

    @cached_property
    def of_joints(self) -> "FieldOnArrays":
        """Copy of the field with forces of the joints alone, without external forces."""
        return FieldOnArrays(self._model, self._field.of_joints) if self._field.forces else self

    @cached_property
    def is_given(self) -> bool:
        """Whether the held inputs are the only joint forces."""
        f = self._field
        none = f.passive is None and f.drive is None and f.actuators is None and not f.forces
        return none and not has_passive_forces(self._model)

    @cached_property
    def _forces(self):
        """Compiled kernel of the joint forces."""
        return joint_forces.compiled(*self._zeros(), field=self._field)

    @cached_property
    def _derivatives(self):
        """Compiled kernel of the derivatives of joint forces."""
        call = _force_derivatives.bind(*self._zeros(), field=self._field)
        return _force_derivatives.prepare_call(call)

    @cached_property
    def _curvature(self):
        """Compiled kernel of second derivatives of joint forces along vectors."""
        n = self._model.nv
        zeros = tuple(np.zeros(shape) for shape in ((n, n), (n, n), n))
        call = _force_curvature.bind(*self._zeros(), field=self._field, cotangent=zeros)
        return _force_curvature.prepare_call(call).kernel

    def _zeros(self):
        """Example arguments with which kernels are traced."""
        model = self._model
        return model, 0.0, model.neutral(), np.zeros(model.nv), self._field.inputs(model)


@kernel
def joint_forces(model, t, q, qd, inputs, *, field):
    """Kernel of all joint forces of a field."""
    return field.joint_force(model, t, q, qd, inputs)


_force_derivatives = differentiate(joint_forces, wrt=("q", "qd", "t"))
_force_curvature = vjp(_force_derivatives, wrt=("q", "qd"))
inverse_dynamics_derivatives = differentiate(dynamics.inverse_dynamics, wrt=("q", "qd"))


def motion_derivatives(field, model, t, q, qd, qdd, tau) -> tuple[Any, ...]:
    """Derivatives of ``F = H qdd + C - tau`` by q, qd, qdd and t."""
    D_q, D_v = inverse_dynamics_derivatives(model, q, qd, qdd)
    f_q, f_v, f_t = field.derivatives(t, q, qd, tau)
    return D_q - f_q, D_v - f_v, dynamics.mass_matrix(model, q), -f_t


def opposing(F) -> Any:
    """Stabilising part of ``-F``, (..., nv, nv): symmetric, diagonal at least zero."""
    A = -(F + np.swapaxes(F, -1, -2)) / 2
    i = np.arange(A.shape[-1])
    A[..., i, i] = np.maximum(A[..., i, i], 0)
    return A


def _through_opposing(weight, F):
    """Gradients by ``F`` from those by ``opposing(F)``."""
    found = -(weight + np.swapaxes(weight, -1, -2)) / 2
    i = np.arange(F.shape[-1])
    found[..., i, i] *= F[..., i, i] < 0
    return found


def move_derivative(model, u) -> Any:
    """Derivative (..., nv, nv) of ``move(model, q, u)`` by ``u``; 1 on flat spaces."""
    return 1.0 if is_flat(model) else _by_joint(model, dexp, u, np.eye(model.nv))


def turning(model, qd) -> Any:
    """Derivative (..., nv, nv) of ``dexp⁻¹(u) qd`` by ``u`` at zero; 0 on flat spaces."""
    if is_flat(model):
        return 0.0
    return -_by_joint(model, bracket_matrix, qd, np.zeros((model.nv, model.nv))) / 2


def _by_joint(model, function, u, rest):
    """Block-diagonal matrices of a function of rotating joints; ``rest`` elsewhere."""
    found = np.empty(model_shape(model, u))
    found[...] = rest
    for joint, at in turning_joints(model):
        found[..., at, at] = of_each(function, joint, u[..., at])
    return found


def turning_joints(model) -> list:
    """Joints whose velocities are not derivatives of positions, with their slices."""
    pairs = zip(model.joint[1:], model.v_slice[1:], strict=True)
    return [(joint, at) for joint, at in pairs if not joint.rates_are_velocities]


def of_each(function, joint, *arrays, **options) -> Any:
    """Matrices of a function of one joint for every sample of some arrays."""
    lead = arrays[0].shape[:-1]
    samples = zip(*(a.reshape(-1, a.shape[-1]) for a in arrays), strict=True)
    found = [np.asarray(function(joint, *x, **options), dtype=float) for x in samples]
    return np.array(found).reshape(*lead, *found[0].shape)


def solve_each(A, b) -> Any:
    """Solutions of ``A x = b`` for batches of matrices, ``b`` with extra leading axes."""
    more = b.ndim - A.ndim + 1
    columns = b.reshape(-1, *b.shape[more:])
    return np.moveaxis(np.linalg.solve(A, np.moveaxis(columns, 0, -1)), -1, 0).reshape(b.shape)


def transposed_times(A, x) -> Any:
    """Product ``Aᵀ x`` with batch axes."""
    return times(np.swapaxes(A, -1, -2), x)


def model_shape(model, q) -> tuple:
    """Shape (..., nv, nv) of a matrix for each of some configurations."""
    return (*np.shape(q)[:-1], model.nv, model.nv)


def _number(x):
    """Float array of a number."""
    return np.asarray(x, dtype=float)
