"""The report of a simulation: checks of its result."""

from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.closed.rank import scaling
from kinetree.contact.engine.summary import FASTEST, KINETIC, UNBALANCED
from kinetree.errors import SimulationWarning, warn
from kinetree.functional.kernel import kernel
from kinetree.integration.breakdown import joint_of, remedy
from kinetree.joints import Free
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.stepping.singular_passes import SingularPass
from kinetree.model.limits import has_dynamics
from kinetree.model.memo import remember
from kinetree.notebook import block, table
from kinetree.quantities import dynamics
from kinetree.simulation.forces.limits import beyond_effort, limits_effort
from kinetree.simulation.later import Later, resolve
from kinetree.simulation.results.observables import of_states

_WHERE_ANY = (
    "rejected", "event_energy", "loop_error", "loop_rate_error", "refined", "singular_passes",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Report:
    """Checks of a simulation; of a batch, the worst.

    Attributes:
        integrator: its name.
        steps: steps that were taken.
        rejected: steps that were thrown away because of their error.
        largest_step: the longest [s].
        energy_error: largest difference between the change of kinetic and potential energy and the
            work of the joint forces, that of events included, relative to the energy that was
            exchanged.
        event_energy: energy that events such as impacts gave; negative if they took some [J].
        momentum_error: largest change of the momentum of a mechanism that floats freely, gravity
            accounted for, relative to that of its parts; None for others, and where
            an event changed the state.
        loop_error: largest position error of a loop or coupling [m or rad].
        loop_rate_error: largest velocity error of a loop or coupling [m/s or rad/s].
        constraints: how loops and couplings were kept; None for trees.
        refined: steps that were taken in parts, close to singular configurations.
        singular_passes: how often the mechanism came close to a singular configuration.
        smallest_pivot: of the inertia matrix, relative to its diagonal: 1 for joints that are not
            coupled by inertia, 0 where it is singular.
        largest_advance: largest displacement of a joint in one step [rad or m].
        smallest_distance: of the variables of a joint from where they are singular, as Euler
            angles are in gimbal lock and rotation vectors at a full turn: 1 far away, 0 there; None
            where no joint has such variables.
        contact: residuals of contact, ``kinetree.contact.Residuals``, or None without. Their
            penetration is measured at the end of every step by the engine, and foreseen by
            unrolled steps.
        penetration: the same where it is measured [m or rad]; None for unrolled steps, without
            rigid contact, and for bodies that overlap at the start.
        warnings: reasons not to trust the result.
        integrator_reason: why ``integrator="auto"`` took an implicit one; "" where it did not.
        tier: of the code that ran, ``"general"`` if any of it serves every robot; docs/tiers.md.
    """

    integrator: str
    steps: int
    rejected: int
    largest_step: float
    energy_error: float
    event_energy: float
    momentum_error: float | None
    loop_error: float
    smallest_pivot: float
    largest_advance: float
    smallest_distance: float | None = None
    loop_rate_error: float = 0.0
    constraints: str | None = None
    refined: int = 0
    singular_passes: int = 0
    contact: Any = None
    penetration: float | None = None
    warnings: tuple[str, ...] = ()
    integrator_reason: str = ""
    tier: str = "specialised"

    @property
    def trusted(self) -> bool:
        """Whether the simulation raised no warnings."""
        return not self.warnings

    def _rows(self):
        """Names and formatted values of all entries that apply."""
        rows = []
        for f in fields(self):
            value = getattr(self, f.name)
            idle = f.name in _WHERE_ANY and not value
            if f.name in ("warnings", "contact", "integrator_reason") or value is None or idle:
                continue
            if f.name == "integrator" and hasattr(self.contact, "touching"):
                value = f"{value} in flight"
            if f.name == "integrator" and self.integrator_reason:
                value = f"{value}: {self.integrator_reason}"
            shown = f"{value:.3g}" if isinstance(value, float) else value
            rows.append((f.name.replace("_", " "), str(shown)))
        for name, value in self.contact._asdict().items() if self.contact else ():
            name = _OF_CONTACT.get(name, name.replace("_", " "))
            rows.append((f"contact: {name}", f"{value:.4g}"))
        return rows + ([("result", "can be trusted")] if self.trusted else [])

    def __repr__(self):
        rows = self._rows()
        wide = max(len(name) for name, _ in rows)
        lines = [f"{name:{wide}s}  {value}" for name, value in rows]
        at = len(lines) - self.trusted
        return "\n".join([*lines[:at], *(f"warning: {w}" for w in self.warnings), *lines[at:]])

    def _repr_html_(self):
        """HTML table of the report, for notebooks."""
        rows = [*self._rows(), *(("warning", w) for w in self.warnings)]
        return block(f"Report: {self.steps} steps by {self.integrator}", table((), rows))


_OF_CONTACT = {  # what residuals of steps are called, with their units
    "velocity": "velocity error [m/s]", "cone": "friction beyond its cone [N s]",
    "complementarity": "complementarity [J]", "penetration": "penetration, predicted [m]",
    "opening": "opening of loops [m]", "contact_work": "work [J]", "loss": "loss by impacts [J]",
    "taken": "energy removed [J]", "gain": "energy created [J]", "touching": "steps that touch",
}  # fmt: skip


# --- Whether the result of a simulation can be trusted -------------------------------------------

TOLERATED_DRIFT = 0.01
"""Error of energy or momentum, relative to what is exchanged, above which we warn."""
TOLERATED_LOOP_ERROR = 1e-6
"""Error of a loop or coupling [m or rad] that has grown, above which we warn."""
TOLERATED_ADVANCE = 1.0
"""Displacement of a joint in one step [rad or m] above which we warn."""
SMALLEST_PIVOT = 1e-10
"""Relative pivot of the inertia matrix below which we warn."""
SMALLEST_DISTANCE = 1e-3
"""Distance of the variables of a joint from a singularity below which we warn."""
TOLERATED_PENETRATION = 1e-9
"""Penetration at the end of a step [m or rad] above which we warn."""
TOLERATED_SLIP = 1e-9
"""Error of a velocity at a contact above which we warn, relative to 1 plus the fastest joint."""
_AT_THE_ROOT = ("armature", "stiffness", "damping", "friction")
_SAMPLES = 64  # instants at which the inertia matrix is looked at,
_OPERATIONS = 64 * 150**3  # or as many as this many operations of its factors allow; two at least


def check_result(
    stepper, record, arrays, seen, loop_error, *, adaptive, reason="", tier="specialised"
) -> Later:
    """``Report`` on a simulation's accuracy; issues its warnings.

    Args:
        stepper: what took the steps.
        record: what was counted.
        arrays: what was stored, by name.
        seen: ``Observables`` of the stored states.
        loop_error: position and velocity errors of loops at the stored states, or None.
        adaptive: whether steps were as long as their error allowed.
        reason: why the integrator is an implicit one.
        tier: of the code that ran.
    """
    model, kicked = stepper.model, any(_changes_the_state(event) for event in record.events)
    contact = record.worst
    if record.recorded is None:
        H = _inertia_matrices(model, arrays["q"], getattr(stepper.field, "chosen", None))
        pivot = _smallest_pivot(_of_others(model, stepper.field.prescription, H))
    else:  # which the factors of all steps have shown
        H, pivot = None, record.recorded["pivot"]
    summary = None if record.recorded is None else record.recorded.get("summary")
    distances = _distances(model, arrays["q"])
    inside = getattr(stepper, "inside", "")
    engine, deep, too_deep = getattr(stepper, "engine", None), None, 0.0
    if engine is not None and contact is not None and not inside:  # measured in every step
        deep = contact.penetration
        too_deep = deep if deep > engine.trusted_overlap else 0.0
    opened = (0.0, 0.0)
    if loop_error is not None:
        opened = tuple(float(np.max(x, initial=0.0)) for x in loop_error)
    numbers = SimpleNamespace(
        integrator=stepper.method.name,
        steps=record.steps,
        rejected=record.rejected,
        largest_step=float(record.largest_step),
        energy_error=_energy_error(model, seen, arrays["work"], summary),
        event_energy=_event_energy(record.events),
        momentum_error=None
        if kicked or contact
        else _momentum_error(model, stepper.field, arrays, seen, H),
        loop_error=opened[0],
        smallest_pivot=pivot,
        largest_advance=float(record.largest_advance),
        smallest_distance=min((float(np.min(d)) for d in distances.values()), default=None),
        loop_rate_error=opened[1],
        constraints=getattr(stepper, "constraints", None),
        refined=getattr(stepper, "refined", 0),
        singular_passes=sum(isinstance(event, SingularPass) for event in record.events),
        contact=contact,
        penetration=deep,
        integrator_reason=reason,
        tier=tier,
    )
    asked = getattr(getattr(stepper, "settings", None), "tolerance", 0.0)  # of velocities
    slip = max(TOLERATED_SLIP, 1e4 * asked)
    slip *= 1 + _fastest(arrays["qd"], summary)
    said = [*_warnings(model, numbers, arrays, loop_error, adaptive, inside, slip, too_deep)]
    said += _warnings_of_inertia(model, numbers, arrays["t"], distances)
    for message in said:
        warn(message, SimulationWarning)
    return Later(lambda: Report(**vars(numbers), warnings=tuple(said)))


def _fastest(qd, summary) -> float:
    """Largest joint velocity over all stored times."""
    if summary is not None:
        return float(summary[:, FASTEST].max(initial=0.0))
    return float(np.abs(qd).max(initial=0.0))


def _energy_error(model, seen, work, summary):
    """Relative energy error: change of energy minus work, over the energy exchanged.

    Or over the weight times 1e-12 m: what rests exchanges nothing but errors of rounding.
    """
    weight = remember(model, ("weight",), lambda: (_weight(model),))[0]
    if summary is not None:
        rows = summary[:, KINETIC : UNBALANCED + 1].tolist()
        return max((_relative(*five, weight=weight) for five in rows), default=0.0)
    energy = seen.kinetic + seen.gravity
    lowest, highest = seen.gravity.min(axis=0), seen.gravity.max(axis=0)
    most, unbalanced = np.abs(work).max(axis=0), np.abs(energy - energy[0] - work).max(axis=0)
    kinetic = seen.kinetic.max(axis=0)
    error = _relative(kinetic, lowest, highest, most, unbalanced, weight=weight)
    return float(np.max(error, initial=0.0))


def _relative(kinetic, lowest, highest, work, unbalanced, *, weight):
    """Energy error relative to exchanged energy, with a floor for motions at rest."""
    high = max(highest, -lowest) if isinstance(lowest, float) else np.maximum(highest, -lowest)
    exchanged = kinetic + (highest - lowest) + work
    return unbalanced / (exchanged + 1e-9 * high + 1e-12 * weight + _TINY)


def _weight(model) -> float:
    """Weight of all bodies [N]."""
    return float(sum(I.mass for I in model.inertia[1:]) * np.linalg.norm(model.gravity))


_TINY = np.finfo(float).tiny


def _event_energy(events):
    """Energy that events added, in the sample with the largest amount [J]."""
    of_sample: dict = {}
    for e in events:
        sample = getattr(e, "sample", ())
        of_sample[sample] = of_sample.get(sample, 0.0) + getattr(e, "energy", 0.0)
    return float(max(of_sample.values(), key=abs, default=0.0))


def _changes_the_state(event):
    """Whether an event changed positions or velocities."""
    names = (name for name in ("q", "qd") if hasattr(event, f"{name}_after"))
    return any(np.any(getattr(event, n) != getattr(event, f"{n}_after")) for n in names)


def _momentum_error(model, field, arrays, seen, H):
    """Relative change of momentum of a free-floating mechanism; None for others."""
    if not _floats_freely(model, field, arrays["tau"]):
        return None
    mass = model.total_mass
    t = (arrays["t"] - arrays["t"][0]).reshape(-1, *[1] * (arrays["q"].ndim - 1))
    n, p, c = seen.momentum[..., :3], seen.momentum[..., 3:], seen.center
    arm = np.sqrt(np.trace(H[0, :3, :3]) / mass)  # radius of gyration, roughly
    if np.any(model.gravity):
        n = n - np.cross(c, p)
    else:
        arm = arm + np.linalg.norm(c, axis=-1).max(axis=0)
    scale = np.sqrt(2 * mass * seen.kinetic.max(axis=0)) + np.finfo(float).tiny
    linear = np.linalg.norm(p - p[0] - mass * model.gravity * t, axis=-1) / scale
    angular = np.linalg.norm(n - n[0], axis=-1) / (scale * arm)
    return float(max(linear.max(initial=0.0), angular.max(initial=0.0)))


def _floats_freely(model, field, tau):
    """Whether a free-floating mechanism has no joint force against the base."""
    roots = [model.bodies[i - 1] for i in model.children[0]]
    return (
        len(roots) == 1
        and isinstance(roots[0].joint, Free)
        and not any(has_dynamics(roots[0], name) for name in _AT_THE_ROOT)
        and not any(model.children[0][0] in t.moves_with(model) for t in model.tendons)
        and not (model.is_constrained or field.forces)
        and not (model.gravity_compensation or model.fluid_forces)
        and not np.any(np.asarray(resolve(tau))[..., :6])
    )


def _inertia_matrices(model, q, chosen):
    """Inertia matrices at some of the stored states, (n, nv, nv), loops included.

    Where others carry bodies without inertia along, of the motions that the constraints allow.
    """
    q = q.reshape(q.size // max(model.nq, 1), model.nq)
    if not model.is_constrained:
        count = min(max(_OPERATIONS // max(model.nv, 1) ** 3, 2), _SAMPLES)
        some = q[:: max(1, len(q) // count)]
        return of_states(lambda q: (dynamics.mass_matrix(model, q),), some, results=model.nv**2)[0]
    some = q[:: max(1, len(q) // 8)]  # one by one, in Python
    H = np.array([crba.joint_space_inertia(model, x) for x in some])
    if not getattr(chosen, "weight", 0):
        return H
    units = scaling(model).columns
    K = np.array([chosen.matrix(np.asarray(constraint(model, x, 0 * units).K)) for x in some])
    G = np.swapaxes(np.linalg.svd(K * units)[2][:, K.shape[1] :], -1, -2) * units[:, None]
    return np.swapaxes(G, -1, -2) @ H @ G


def _of_others(model, prescription, H):
    """Inertia matrices restricted to joints that are not prescribed."""
    if prescription is None or H.shape[-1] != model.nv:
        return H
    free = np.flatnonzero(prescription.others(model))
    return H[..., free[:, None], free]


def _smallest_pivot(H):
    """Smallest pivot of scaled inertia matrices; 0 if one is not positive definite."""
    if not H.size:
        return 1.0
    diagonal = np.diagonal(H, axis1=-2, axis2=-1)
    scale = np.sqrt(diagonal)
    try:
        return float(np.min(_pivots(H / (scale[..., :, None] * scale[..., None, :]))))
    except np.linalg.LinAlgError:
        return 0.0


_BLOCK = 64  # rows of a block, whose products BLAS leaves to one thread: many wait for each other


def _pivots(A):
    """Cholesky pivots of matrices (..., n, n); LinAlgError if one is not positive."""
    n = A.shape[-1]
    k = -(-n // _BLOCK)
    if k <= 2:
        return np.diagonal(np.linalg.cholesky(A), axis1=-2, axis2=-1) ** 2
    padded = np.zeros((*A.shape[:-2], k * _BLOCK, k * _BLOCK)) + np.eye(k * _BLOCK)
    padded[..., :n, :n] = A
    blocks = padded.reshape(*A.shape[:-2], k, _BLOCK, k, _BLOCK)
    blocks, found = np.ascontiguousarray(np.swapaxes(blocks, -3, -2)), []
    for j in range(k):
        L = np.linalg.cholesky(blocks[..., j, j, :, :])
        found.append(np.diagonal(L, axis1=-2, axis2=-1) ** 2)
        inverse = np.swapaxes(np.linalg.inv(L), -1, -2)
        column = blocks[..., j + 1 :, j, :, :] @ inverse[..., None, :, :]
        row = np.swapaxes(column, -1, -2)[..., None, :, :, :]
        blocks[..., j + 1 :, j + 1 :, :, :] -= column[..., :, None, :, :] @ row
    return np.concatenate(found, axis=-1)[..., :n]


def _warnings(model, report, arrays, loop_error, adaptive, inside, slip, too_deep):
    """Reasons not to trust a simulation's result, as texts."""
    name = f"the simulation of {model.name!r}"
    higher = "take a smaller dt, or an integrator of higher order"

    def advice(**otherwise):  # which looks for what is stiff: only where there is a reason to warn
        if inside:
            return f"it starts with {inside}: start where bodies touch or are apart"
        return remedy(model, report.largest_step, report.integrator, **otherwise)

    if not report.energy_error <= TOLERATED_DRIFT:
        yield (
            f"{name} gains or loses energy: energies do not balance by {report.energy_error:.2g} "
            f"of the energy exchanged; {advice(otherwise=higher)}"
        )
    if report.momentum_error is not None and not report.momentum_error <= TOLERATED_DRIFT:
        yield (
            f"{name} floats freely and yet its momentum changes, by {report.momentum_error:.2g}; "
            f"{advice(otherwise=higher)}"
        )
    first = 0.0 if loop_error is None else float(np.max(loop_error[0][0], initial=0.0))
    if report.loop_error > max(TOLERATED_LOOP_ERROR, 10 * first):
        yield (
            f"{name} lets its loops open: the error grew from {first:.2g} to "
            f"{report.loop_error:.2g} m or rad; take a smaller dt, or constraints='projection'"
        )
    if report.largest_advance > TOLERATED_ADVANCE and not adaptive:
        joint = joint_of(model, arrays["qd"])
        yield (
            f"{name}: joint {joint!r} moves by {report.largest_advance:.2g} rad or m in one step; "
            f"{advice()}"
        )
    too_strong = None
    if limits_effort(model):
        too_strong = beyond_effort(model, resolve(arrays["tau"]), arrays["t"])
    if too_strong:
        yield f"{name}: {too_strong}"
    if report.contact is not None:
        yield from _warnings_of_contact(
            name, report.contact, advice, slip, report.largest_step, too_deep
        )


def _distances(model, q):
    """Distances (T, ...) of joint variables from their singularities, by joint name."""
    joints = remember(model, ("singular joints",), lambda: (_may_be_singular(model),))[0]
    if not joints or not q.size:
        return {}
    found = _singularities(model, q)
    return {model.joint_names[i - 1]: found[..., k] for k, i in enumerate(joints)}


def _may_be_singular(model):
    """Numbers of the joints that have singular configurations."""
    return tuple(i for i, j in enumerate(model.joint) if i and j.may_be_singular)


@kernel
def _singularities(model, q):
    """Kernel of the distances of joint variables from their singularities."""
    parts = [
        joint.singularity(q[at])
        for joint, at in zip(model.joint[1:], model.q_slice[1:], strict=True)
        if joint.may_be_singular
    ]
    return np.array(parts)


def _warnings_of_inertia(model, report, t, distances):
    """Warnings of nearly singular inertia matrices, with the joint if it is the cause."""
    close = f"the simulation of {model.name!r} comes close to a singular inertia matrix"
    known = False
    for joint, d in distances.items():
        d = d.reshape(len(t), -1).min(axis=1)
        if not d.min() >= SMALLEST_DISTANCE:
            known, kind = True, type(model.joint[model.joint_index(joint)]).__name__
            yield (
                f"{close} at t = {t[np.argmin(d)]:.4g} s: the variables of joint {joint!r} "
                f"({kind}) are singular there, by gimbal lock or at a full turn of a rotation "
                f"vector, and their rates mean little. A kinetree.Spherical joint is singular "
                f"nowhere"
            )
    if report.smallest_pivot < SMALLEST_PIVOT and not known:
        yield (
            f"{close} (smallest relative pivot {report.smallest_pivot:.2g}): accelerations there "
            f"mean little. Look for bodies without mass"
        )


def _warnings_of_contact(name, residuals, advice, slip, step, too_deep):
    """Warnings of penetration and contact residuals of a simulation."""
    worst = max(residuals.opening, too_deep)
    if too_deep or not worst <= max(TOLERATED_PENETRATION, slip * step):
        yield (
            f"{name} lets bodies penetrate, stops be passed or loops open, by up to {worst:.2g} m "
            f"or rad; {advice()}"
        )
    if not residuals.velocity <= slip:
        yield (
            f"{name} did not solve for all contact forces: velocities miss their laws by up to "
            f"{residuals.velocity:.2g} m/s or rad/s; {advice()}"
        )
