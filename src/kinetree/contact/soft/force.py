"""``SoftContact``: forces at the contacts of a scene with compliant surfaces — RBDA §11.8.

    soft = kt.contact.SoftContact(scene, stiffness=1e5, damping=0.3)
    kt.simulate(m, q0, duration=1.0, forces=soft)
    kt.rollout(m, q0, steps=1000, forces=[soft])

Forces follow from positions and velocities, so that they are forces like others: compiled into
steps, batched, and differentiable where the laws are. Points and normals are those of the
undeformed shapes, and follow the contact as it moves.
"""

from functools import cached_property
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.contact.contacts import body_motions
from kinetree.contact.finding.candidates import point_velocities
from kinetree.contact.scene import Scene, as_scene, require_plain_friction
from kinetree.contact.soft import laws
from kinetree.contact.soft.patch import NonlinearPatch, Patch, SeriesSpring, TwoSurfaces
from kinetree.errors import ModelError, TraceError, UnknownNameError, calling, warn
from kinetree.functional.kernel import kernel
from kinetree.model.model import Model
from kinetree.spelling import did_you_mean, explains_itself

NORMAL_LAWS: tuple[type[laws.NormalLaw], ...] = (
    laws.HuntCrossley,
    laws.Linear,
    Patch,
    NonlinearPatch,
    SeriesSpring,
    TwoSurfaces,
)
TANGENTIAL_LAWS: tuple[type[laws.TangentialLaw], ...] = (
    laws.Regularized,
    laws.Stiction,
    laws.Dahl,
)
"""All laws, of normal forces and of friction."""
LAWS: dict[str, Any] = {law.spelling: law for law in NORMAL_LAWS if law.spelling}
"""Normal laws by name."""


@explains_itself
class SoftContact:
    """Forces at the contacts of a scene, as long as shapes overlap.

    Args:
        scene: ``Scene`` whose pairs all have closed forms.
        stiffness: of the surfaces [N/m, or N/m^1.5 for ``"hunt_crossley"``].
        damping: [N·s/m], or the dissipation [s/m] of ``"hunt_crossley"``.
        friction: coefficient, a number or one per candidate; by default those of the scene.
        law: of normal forces: ``"hunt_crossley"`` and ``"linear"`` have no memory; ``"patch"`` is a
            surface that recovers in its own time. Or a ``NormalLaw``, then without stiffness and
            damping.
        tangential: law of friction: a ``TangentialLaw`` or any function like one. By default
            ``Regularized()``, and with ``"patch"`` ``Stiction`` of the same stiffness and damping.
        drag: viscous resistance to moving the indentation over the surface [s/m]: the power
            ``drag f_n v²`` is lost where it moves at ``v``, also by rolling.

    Attributes:
        scene: the scene.
        normal: its ``NormalLaw``.
        tangential: its ``TangentialLaw``.
        friction: coefficients of the candidates, (n,).
    """

    traceable = True

    def __init__(
        self,
        scene: Scene,
        *,
        stiffness: float | None = None,
        damping: float | None = None,
        friction: ArrayLike | None = None,
        law: str | laws.NormalLaw = "hunt_crossley",
        tangential: laws.TangentialLaw | None = None,
        drag: float = 0.0,
    ):
        self.scene = as_scene(scene, "SoftContact")
        self.normal, self.tangential = _laws(law, stiffness, damping, tangential)
        self.drag = float(drag)
        with calling("SoftContact"):
            n = scene.candidates.size
        require_plain_friction(scene, "SoftContact")
        given = np.asarray(scene.candidates.friction if friction is None else friction, dtype=float)
        if given.shape not in ((), (n,)) or not np.all((given >= 0) & np.isfinite(given)):
            raise ModelError(
                f"friction must be a number or one for each of {n} candidates, not negative; got "
                f"{friction!r}"
            )
        if not self.drag >= 0:
            raise ModelError(f"drag must not be negative, got {drag!r}")
        self.friction = np.array(np.broadcast_to(given, (n,)))
        self._moving = [int(b) for b in np.unique(scene.candidates.predecessor) if b]

    def __repr__(self):
        return f"SoftContact({self.scene!r}, {self.normal!r}, {self.tangential!r})"

    # --- without memory ----------------------------------------------------------------------

    @property
    def state_size(self) -> int:
        """Number of states per contact: of the normal law, plus 3 for friction with memory."""
        return self.normal.size + (3 if self.tangential.size else 0)

    def __call__(self, model, t, q, qd):
        """Joint forces, (..., nv)."""
        if self.state_size:
            raise TraceError(
                f"{type(self.normal).__name__} and {type(self.tangential).__name__} remember what "
                f"happened before, so that their forces need states: use force_and_rate, or "
                f"law='hunt_crossley' or 'linear', with Regularized friction"
            )
        gap, J, _ = self.scene.candidate_terms(model, q, qd)
        none = np.zeros((*np.shape(gap), 0))
        f, _ = self._local(gap, J, qd, none, none, 0.0)
        return self._joint_force(model, q, qd, J, f)

    def forces(
        self,
        model: Model,
        q: ArrayLike,
        qd: ArrayLike,
        state: ArrayLike | None = None,
        elapsed: float = 0.0,
    ) -> Array:
        """Contact forces on successors along normal and tangents [N], (..., n, 3).

        Args:
            model: the mechanism.
            q: joint positions, (..., nq).
            qd: joint velocities, (..., nv).
            state: as ``start`` and ``end_states`` give them; that of ``start`` by default.
            elapsed: time since that state [s].
        """
        state = self.start(model, q) if state is None else state
        gap, J, _ = self.scene.candidate_terms(model, q, qd)
        z, x = self._parts(state)
        if self.tangential.size:
            x = _times(self._tangents(model, q), x)
        return self._local(gap, J, qd, z, x, elapsed)[0]

    def energy(self, model: Model, q: ArrayLike) -> Array:
        """Energy stored in the springs of a normal law without memory [J], (...)."""
        if self.normal.size:
            raise UnknownNameError(f"{type(self.normal).__name__} has no energy of positions alone")
        return self.normal.energy(self.scene.candidate_positions(model, q)[0]).sum(-1)

    def _local(self, gap, J, qd, z, x, elapsed):
        """Contact forces (..., n, 3) in contact axes, and rates of the states ``z`` and ``x``."""
        v = _times(J, qd[..., None, :])
        f_n, zd = self.normal(z, gap, v[..., 0], elapsed)
        f_t, xd = self.tangential(x, v[..., 1:], f_n, self.friction)
        f = np.stack([f_n, f_t[..., 0], f_t[..., 1]], axis=-1)
        return f, (zd, xd)

    def _joint_force(self, model, q, qd, J, f):
        """Joint forces (..., nv) of contact forces (..., n, 3), plus drag."""
        tau = (J * f[..., None]).sum((-3, -2))
        if not self.drag:
            return tau
        moving = self._point_jacobian(model, q)
        resistance = -self.drag * f[..., :1] * _times(moving, qd[..., None, :])
        return tau + (moving * resistance[..., None]).sum((-3, -2))

    @cached_property
    def _point_jacobian(self):
        """Jacobian kernel of contact points, made at the first call."""
        return contact_point_jacobian(self.scene)

    # --- with memory: states that a simulation integrates ------------------------------------

    @property
    def rate(self) -> float:
        """Fastest decay rate of a state [1/s]; steps must be short compared with 1 / rate."""
        return max(float(getattr(law, "rate", 0.0)) for law in (self.normal, self.tangential))

    def start(self, model: Model, q: ArrayLike) -> Array:
        """Initial states (..., n, state_size): surfaces in equilibrium with their load."""
        gap = self.scene.candidate_positions(model, q)[0]
        z = np.asarray(self.normal.start(gap), dtype=float)
        zeros = np.zeros((*gap.shape, self.state_size - self.normal.size))
        return np.concatenate([z, zeros], axis=-1)

    def acting(
        self, model: Model, t: float, q: ArrayLike, qd: ArrayLike, state: ArrayLike, elapsed: float
    ) -> tuple[Array, Array]:
        """Deprecated name of ``force_and_rate``."""
        message = "SoftContact.acting is deprecated: use SoftContact.force_and_rate"
        warn(message, DeprecationWarning)
        return self.force_and_rate(model, t, q, qd, state, elapsed)

    def force_and_rate(
        self, model: Model, t: float, q: ArrayLike, qd: ArrayLike, state: ArrayLike, elapsed: float
    ) -> tuple[Array, Array]:
        """Joint forces (..., nv), and rates of the states (..., n, state_size).

        Displacements of friction patches are vectors in base coordinates: they turn with the
        surface that carries them.
        """
        gap, J, _ = self.scene.candidate_terms(model, q, qd)
        z, x = self._parts(state)
        if not self.tangential.size:
            f, (zd, _) = self._local(gap, J, qd, z, x, elapsed)
            return self._joint_force(model, q, qd, J, f), zd
        T = self._tangents(model, q)
        f, (zd, xd) = self._local(gap, J, qd, z, _times(T, x), elapsed)
        xd = (T * xd[..., None]).sum(-2) + self._turning(model, q, qd, x)
        return self._joint_force(model, q, qd, J, f), np.concatenate([zd, xd], axis=-1)

    def end_states(
        self, model: Model, q: ArrayLike, before: ArrayLike, after: ArrayLike, h: float
    ) -> Array:
        """States at the end of a step, adjusted to the contact geometry there.

        Args:
            model: the mechanism.
            q: positions at the end.
            before: states at the start.
            after: states as they were integrated.
            h: length of the step [s].
        """
        gap = self.scene.candidate_positions(model, q)[0]
        (z0, _), (z1, x) = self._parts(before), self._parts(after)
        z = self.normal.end_states(z0, z1, gap, h)
        if not self.tangential.size:
            return z
        T = self._tangents(model, q)
        flat = (T * _times(T, x)[..., None]).sum(-2)
        tiny = 1e-300
        longer = laws.root(((x * x).sum(-1) + tiny) / ((flat * flat).sum(-1) + tiny))
        return np.concatenate([z, longer[..., None] * flat], axis=-1)

    def _parts(self, state):
        """State split into that of the normal law and that of the tangential law."""
        return state[..., : self.normal.size], state[..., self.normal.size :]

    def _tangents(self, model, q):
        """Tangent vectors of all contacts, (..., n, 2, 3)."""
        return self.scene.candidate_positions(model, q)[2][..., 1:, :]

    def _turning(self, model, q, qd, x):
        """Rates ``ω × x`` of vectors carried by the predecessors' rotation, (..., n, 3)."""
        if not self._moving:
            return 0 * x
        w = body_motions(model, q, qd)[0][..., self.scene.candidates.predecessor, :3]
        return np.stack(
            [w[..., i] * x[..., j] - w[..., j] * x[..., i] for i, j in ((1, 2), (2, 0), (0, 1))],
            axis=-1,
        )


def _times(matrices, vectors):
    """Matrix-vector products ``A x``: (..., m, k) and (..., k) to (..., m)."""
    return (matrices * vectors[..., None, :]).sum(-1)


def _laws(law, stiffness, damping, tangential):
    """Normal and tangential laws from the options of ``SoftContact``."""
    if isinstance(law, laws.NormalLaw):
        if stiffness is not None or damping is not None:
            raise ModelError(f"{type(law).__name__} has its own stiffness and damping")
        return law, laws.Regularized() if tangential is None else tangential
    if law not in LAWS:
        hint = did_you_mean(law, LAWS, f"use one of {tuple(LAWS)}, or a NormalLaw")
        raise UnknownNameError(f"soft contact has no law {law!r}; {hint}")
    if stiffness is None or damping is None:
        raise ModelError(f"law {law!r} needs stiffness and damping, say {LAWS[law].suggestion}")
    normal = LAWS[law](stiffness, damping)
    return normal, normal.usual_friction if tangential is None else tangential


# --- Rolling resistance — RBDA §11.8 -------------------------------------------------------------
# A contact point moves over the surface of the predecessor also where bodies roll and nothing
# slides. Moving the indentation along takes work, approximated by a viscous resistance to it.


def contact_point_jacobian(scene):
    """Kernel of ``(model, q)``: contact point velocities over surfaces per qd, (n, 2, nv).

    Args:
        scene: whose candidates the contact points are.
    """
    pairs = scene.pairs

    @kernel
    def jacobian(model, q):
        columns = [point_velocities(model, q, e, pairs) for e in np.eye(model.nv, dtype=int)]
        return np.stack(columns, axis=-1)

    return jacobian
