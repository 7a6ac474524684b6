"""Base parameters: the combinations of inertial parameters that joint forces depend on.

Most of the ten parameters of a body act on the joints only together with others: a mass on the
axis of a hinge does the same as one on the body before it (RBDA §9.7). Which ones do is decided by
numbers: regressors at random states, stacked, have as many independent columns as there are base
parameters, and show how the others depend on them (Gautier, J. Robotic Systems 1991).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kinetree.algorithms.closed.rank import regular_configurations
from kinetree.algorithms.regressors import joint_effects
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.progress import working
from kinetree.errors import IdentifiabilityError, UnknownNameError, names_itself
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.constraint import null_space
from kinetree.loops.kinematics.projection import project_velocity
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.model.memo import remember
from kinetree.notebook import block, table
from kinetree.quantities.loops import coordinate_count
from kinetree.quantities.regressors import regressor

TEN = ("m", "h_x", "h_y", "h_z", "I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz")


def parameter_names(
    model: Model, *, friction: bool = False, rotors: bool = False
) -> tuple[str, ...]:
    """Names of the regressor's columns: ``"link3.I_zz"``, then ``"joint3.viscous"``, ....

    Of a joint with several velocity variables ``"ball[0].viscous"``, ``"ball[1].viscous"``, ...
    """
    names = [f"{body}.{kind}" for body in model.body_names[1:] for kind in TEN]
    for effect in joint_effects(friction, rotors):
        names += [f"{variable}.{effect}" for variable in velocity_names(model)]
    return tuple(names)


def velocity_names(model):
    """Name of every velocity variable: its joint's, with an index if there are several."""
    names = []
    for body in model.bodies:
        nv, name = body.joint.nv, body.joint_name
        names += [name] if nv == 1 else [f"{name}[{k}]" for k in range(nv)]
    return names


def inertial_parameters(model: Model) -> Array:
    """Inertial parameters of all moving bodies, (10 body_count,), as of ``Inertia.parameters``."""
    return np.concatenate([np.zeros(0), *(I.parameters() for I in model.inertia[1:])])


@working("finding base parameters")
@names_itself
def base_parameters(
    model: Model,
    *,
    friction: bool = False,
    rotors: bool = False,
    tolerance: float = 1e-7,
    rng: np.random.Generator | int = 0,
    independent: str | Sequence[str] | None = None,
) -> "BaseParameters":
    """Base parameters: the identifiable combinations of a model's parameters.

    With loops, those that affect the forces along the motions that loops allow: fewer than those of
    the spanning tree.

    Args:
        model: the mechanism. Only its geometry and its gravity count.
        friction: as in ``regressor``: parameters of friction as well.
        rotors: inertias of rotors as well.
        tolerance: a column is dependent if the norm of its independent part, at random states,
            relative to that of the column is smaller.
        rng: a NumPy random generator or a seed, for the states.
        independent: of a mechanism with loops, names of the joints whose variables are the
            coordinates of ``regressor``; ``kinetree.loops.independent(model)`` if left out. The
            combinations do not depend on it.

    Returns:
        The combinations, their names, and the columns of the regressor that represent them.
    """
    if independent is not None and not isinstance(independent, str):
        independent = tuple(independent)
    key = ("base_parameters", friction, rotors, tolerance, rng, independent)
    options = {"friction": friction, "rotors": rotors, "independent": independent}

    def make():
        return _decide(model, options, tolerance, np.random.default_rng(rng))

    return remember(as_model(model), key, make) if isinstance(rng, int) else make()


def require_freedoms(model, function):
    """Raise IdentifiabilityError if the mechanism has no freedom."""
    if model.nv == 0:
        raise IdentifiabilityError(
            f"{function} finds parameters by forces along joints, and no joint of model "
            f"{model.name!r} has a variable"
        )


def _decide(model, options, tolerance, rng):
    """Independent columns of the regressor, and the others as combinations of these."""
    names = parameter_names(model, friction=options["friction"], rotors=options["rotors"])
    W = _stack(model, rng, len(names), options)
    norms = np.linalg.norm(W, axis=0)
    pure = norms / _units(model, len(names))
    norms[pure <= tolerance * np.max(pure, initial=0.0)] = 0.0
    nonzero = np.flatnonzero(norms)
    unit = np.linalg.qr(W[:, nonzero] / norms[nonzero], mode="r")  # depend on each other alike
    places, new = _independent(unit, tolerance)
    chosen, novelty = tuple(nonzero[places].tolist()), np.zeros(len(names))
    novelty[nonzero] = new
    K = np.zeros((len(chosen), len(names)))
    K[:, nonzero] = _combinations(unit, places) * norms[nonzero] / norms[list(chosen)][:, None]
    K[:, chosen] = np.eye(len(chosen))
    return BaseParameters(model, names, chosen, K, novelty, **options)


def _units(model, count):
    """Scales of mass, first-moment and inertia columns: powers of the model's size."""
    length = max((float(np.linalg.norm(b.placement.r)) for b in model.bodies), default=0.0) or 1.0
    units = np.ones(count)
    of_bodies = np.tile([length**2, *[length] * 3, *[1.0] * 6], model.body_count)
    units[: len(of_bodies)] = of_bodies
    return units


def _stack(model, rng, count, options):
    """Regressors at random states, stacked, with more rows than columns."""
    samples = 20 + 2 * count // max(coordinate_count(model, {}), 1)
    if model.is_constrained:  # those of the tree, which need no code of their own
        q, qd, qdd, G = allowed_states(model, samples, rng, options["independent"])
        Y = np.swapaxes(G, -1, -2) @ regressor(
            model.spanning_tree, q, qd, qdd, friction=options["friction"], rotors=options["rotors"]
        )
    else:
        q = np.array([model.random_configuration(rng) for _ in range(samples)])
        qd, qdd = rng.standard_normal((2, samples, model.nv))
        Y = regressor(model, q, qd, qdd, **options)
    return np.reshape(Y, (len(q) * Y.shape[-2], count))


def allowed_states(model, samples, rng, independent=None):
    """Random states that loops allow: ``q`` (samples, nq), ``qd`` and ``qdd`` (samples, nv).

    And ``G`` at each of them, (samples, nv, p), as ``kinetree.loops.null_space`` returns it.
    Some at each of fewer configurations, none of them singular.
    """
    closed, exact = regular_configurations(model, 10 + samples // 4)
    if not exact:
        closed = assemble(model, closed)  # to the last digit
    q, qd = closed[np.arange(samples) % len(closed)], np.zeros((samples, model.nv))
    if model.is_rheonomic or model.has_timed_joints:
        qd = project_velocity(model, q, qd)
    G = null_space(model, q, qd, independent=independent).G
    yd, ydd = rng.standard_normal((2, samples, G.shape[-1], 1))
    qd = qd + (G @ yd)[..., 0]
    qdd = (G @ ydd)[..., 0] + null_space(model, q, qd, independent=independent).g
    return q, qd, qdd, G


def _independent(W, tolerance):
    """Indices of columns independent of those before, and the new fraction of each."""
    basis, chosen, novelty = np.zeros(W.T.shape), [], np.zeros(W.shape[1])
    for j, column in enumerate(W.T):
        known, x = basis[: len(chosen)], column
        for _ in range(2):  # twice is enough
            x = x - known.T @ (known @ x)
        novelty[j] = np.linalg.norm(x)
        if novelty[j] > tolerance:
            basis[len(chosen)] = x / novelty[j]
            chosen.append(j)
    return chosen, novelty


def _combinations(W, chosen):
    """Matrix ``B`` with ``W = W[:, chosen] B``, by least squares."""
    Q, R = np.linalg.qr(W[:, chosen])
    B = np.linalg.solve(R, Q.T @ W)
    B[np.abs(B) < 1e-10] = 0.0
    return B


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The identifiable combinations ``K p`` of the parameters ``p``, one for each chosen column.

    Attributes:
        model: the mechanism.
        names: names of all parameters, in the order of the columns of ``regressor``.
        columns: which columns are independent; the first that can be, from the base outwards.
        combinations: ``K``, (len(columns), len(names)).
        novelty: for each column, the part that is independent of the previous ones: of order one
            if it is independent, of the order of rounding errors if it is not.
        friction: whether parameters of friction are among them, as in ``regressor``.
        rotors: whether inertias of rotors are.
        independent: of a mechanism with loops, the coordinates of ``regressor``.
    """

    model: Model
    names: tuple
    columns: tuple
    combinations: np.ndarray
    novelty: np.ndarray
    friction: bool | str = False
    rotors: bool = False
    independent: str | tuple | None = None

    def __len__(self):
        return len(self.columns)

    @property
    def labels(self) -> tuple[str, ...]:
        """Combinations of parameters as text, such as ``"upper.h_x + 0.5 fore.m"``."""
        return tuple(_sum_of(row, self.names, first=j) for row, j in self._rows())

    @property
    def identifiable(self) -> Array:
        """Mask of the parameters that are identifiable by themselves, (len(names),)."""
        alone = np.zeros(len(self.names), dtype=bool)
        for row, j in self._rows():
            alone[j] = np.count_nonzero(row) == 1
        return alone

    @property
    def without_effect(self) -> Array:
        """Mask of the parameters on which joint forces do not depend."""
        return ~np.any(self.combinations, axis=0)

    def values(self, parameters: ArrayLike | None = None) -> Array:
        """Values of the base parameters, by default the model's without friction."""
        if parameters is None:
            parameters = np.zeros(len(self.names))
            own = inertial_parameters(self.model)
            parameters[: len(own)] = own
        return self.combinations @ np.asarray(parameters)

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Base regressor: independent columns, (..., nv, len(self)), or (..., p, ...) with loops.

        Their product with the combinations is the joint force; with loops, ``Gᵀ tau``.
        """
        options: dict = {"friction": self.friction, "rotors": self.rotors}
        Y = regressor(self.model, q, qd, qdd, **options, independent=self.independent)
        return np.take(Y, self.columns, axis=-1)

    def projected(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> Array:
        """Joint forces for the base regressor: ``tau``, or with loops ``Gᵀ tau``, (..., p)."""
        if not self.model.is_constrained:
            return tau
        G = null_space(self.model, q, qd, independent=self.independent).G
        return np.einsum("...np,...n->...p", G, tau)

    def index(self, name: str) -> int:
        """Index of a base parameter by its name or label.

        Raises:
            IdentifiabilityError: for a parameter that only acts in combinations, which it names,
                or not at all.
        """
        if name in self.labels:
            return self.labels.index(name)
        if name not in self.names:
            raise UnknownNameError(
                f"model {self.model.name!r} has no parameter {name!r}; names are such as "
                f"{', '.join(map(repr, self.names[:10:3]))}; combinations are in 'labels'"
            )
        j = self.names.index(name)
        if self.without_effect[j]:
            raise IdentifiabilityError(
                f"{name} cannot be identified: no joint force of model {self.model.name!r} "
                f"depends on it"
            )
        mixed = [label for label, row in zip(self.labels, self.combinations, strict=True) if row[j]]
        raise IdentifiabilityError(
            f"{name} cannot be identified by itself, only as part of "
            f"{'; '.join(mixed[:3])}{' and others' if len(mixed) > 3 else ''}. "
            f"identify(..., consistent=True) gives the possible value nearest to the model's"
        )

    def _rows(self):
        """Pairs of combinations and their columns."""
        return zip(self.combinations, self.columns, strict=True)

    def __repr__(self):
        return (
            f"BaseParameters({self.model.name!r}: {len(self)} of {len(self.names)} parameters, "
            f"{np.count_nonzero(self.without_effect)} without effect)"
        )

    def _repr_html_(self):
        """HTML table of this object for notebooks."""
        return block(repr(self), table(("base parameter",), [(label,) for label in self.labels]))


def _sum_of(row, names, first):
    """Linear combination of parameters as text, leading parameter first."""
    text = names[first]
    for j in np.flatnonzero(row):
        if j != first:
            size = f"{abs(row[j]):.6g}"
            text += f" {'-' if row[j] < 0 else '+'} {'' if size == '1' else size + ' '}{names[j]}"
    return text
