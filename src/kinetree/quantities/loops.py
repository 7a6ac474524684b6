"""Quantities of mechanisms with loops: compiled, batched, ranks decided where they must be.

``with_loops`` serves the calls of a quantity for which there is no kernel: trees by the definition
of the quantity, mechanisms with loops by a text about the motions that the loops allow
(``algorithms.closed.independent``). The text is compiled for the model, with an order of
elimination that was chosen for it beforehand; every sample comes back with a number that says
whether that suits it. Those that it does not suit take compiled code without such an order, and
what is left is solved one by one, in Python, by the same text with ranks decided for the
configuration; the errors say what is wrong. Inside kernels, and for derivatives, there is no order.
"""

from functools import cached_property, partial
from typing import Any

import numpy as np

from kinetree.algorithms.closed.independent import (
    allowed_motion,
    allowed_motion_at,
    coordinate_labels,
    coordinate_plan,
    independent_variables,
    named_variables,
    variable_names,
)
from kinetree.arrays.batch import of_sample, over_batch
from kinetree.arrays.kinds import good_samples, is_foreign
from kinetree.codegen.inline import trace_of
from kinetree.codegen.program import Argument, trace
from kinetree.errors import LoopError, ShapeError, SingularError, TraceError, calling
from kinetree.model.arrays import as_model, require_unit_parts
from kinetree.model.define import quantity
from kinetree.model.kernels import kernel_for
from kinetree.model.memo import remember
from kinetree.quantities.few_samples import are_few
from kinetree.spatial import Force
from kinetree.spatial.ops import less

__all__ = [
    "allowed_velocities", "allowed_velocity_rate", "coordinate_count", "coordinate_names",
    "none_kept", "with_loops",
]  # fmt: skip


def coordinate_count(model, options) -> int:
    """Number of independent coordinates: ``nv``, or the degrees of freedom with loops."""
    return len(independent_variables(model)) if model.is_constrained else model.nv


def coordinate_names(model) -> tuple[str, ...]:
    """Names of the independent coordinates chosen for a mechanism with loops."""
    names = variable_names(model)
    return tuple(names[i] for i in independent_variables(model))


def none_kept(model, options) -> tuple:
    """Empty tuple: no particular variable has to be independent."""
    return ()


def with_loops(text, keep=None):
    """Function that serves a quantity's calls for models with loops, by the allowed motions.

    Args:
        text: takes an ``AllowedMotion`` and, by name, the arrays other than ``q`` and ``qd`` and
            the options of the quantity.
        keep: None where the result is about the coordinates that ``independent`` names; or a
            function of the model and the options for the numbers of the variables that must be
            among the independent ones.
    """

    def otherwise(definition, model, *args, **named):
        if not as_model(model).is_constrained:
            require_no_choice(model, named.pop("independent", None))
            return definition(model, *args, **named)
        given, extra, options = definition.arguments(model, *args, **named)
        chosen = given.get("independent")
        chosen = chosen if chosen is None or isinstance(chosen, str) else tuple(chosen)
        with calling(definition.called):
            key = ("loops", definition.name, *options.values(), chosen, extra)
            closed = remember(
                model, key, lambda: _Closed(model, definition, text, keep, extra, options, chosen)
            )
            return closed.result([given[n] for n in closed.names])

    return lambda definition: partial(otherwise, definition)


def require_no_choice(model, independent):
    """Raise LoopError if coordinates are chosen for a mechanism without loops."""
    if independent is not None:
        raise LoopError(
            f"model {model.name!r} has no loops: all its joint variables are independent, got "
            f"independent={independent!r}"
        )


class _Closed:
    """A quantity of a mechanism with loops, for some options and coordinates."""

    def __init__(self, model, definition, text, keep, extra, options, independent):
        self.model, self.definition, self.text, self.options = model, definition, text, options
        self.names, self.extra = (*definition.required, *extra), extra
        self.every, self.kernels = keep is None, {}
        self.keep = named_variables(model, independent) if keep is None else keep(model, options)
        self.coordinates = ()  # that are not variables of the tree
        if any(c >= model.nv for c in self.keep):
            self.every, self.keep, self.coordinates = False, (), self.keep
        self.shape = definition.shape_of(model, options)
        self.inputs = definition.inputs(model, extra, options)

    @cached_property
    def plan(self):
        """Elimination plan of the coordinates, chosen once; None where there is none."""
        return coordinate_plan(self.model, self.keep)

    def result(self, arrays):
        """Result of the quantity, for all samples."""
        if any(map(is_foreign, arrays)):  # singular samples: NaN
            self._require_plan()
            found, health = self._kernel(anywhere=True).call(*arrays)
            return good_samples(found, health >= 1)
        if trace_of([np.asarray(a) for a in arrays]) is not None:
            self._require_plan()
            return self._over_batch(self._trace_call, arrays)
        if self._are_few(arrays) or self.plan is None:
            return self._one_by_one(arrays)
        try:
            found, health = self._kernel().call(*arrays)
        except (TraceError, SingularError):  # joints of one's own; what has no solution somewhere
            return self._one_by_one(arrays)
        return found if np.all(health >= 1) else self._repair(arrays, found, health)

    def _are_few(self, arrays):
        """Whether a call has too few samples to repay compiling."""
        if self.model.couplings:
            return False
        key = self.definition.name, *self.options.values(), self.coordinates or self.keep
        return are_few(self.model.timeless, key, arrays, [len(i.shape) for i in self.inputs])

    def _require_plan(self):
        """Raise an error if no elimination plan suits the coordinates."""
        if self.plan is None:
            raise SingularError(
                f"{self.definition.called}: model {self.model.name!r} has no order of elimination "
                f"for these coordinates that suits the configurations of its loops; choose others"
            )

    def _at(self, arrays, motion):
        """Function of the allowed motion for one sample, and the generator of such motions."""
        given = dict(zip(self.names, arrays, strict=True))
        if "f_ext" in given:
            given["f_ext"] = [None, *map(Force.from_array, given["f_ext"])]
        q, qd = given.pop("q"), given.pop("qd", None)
        return lambda at: self.text(at, **given, **self.options), motion(self.model, q, qd)

    def _by_plan(self, *arrays, anywhere):
        """Result and health for one sample of any kind of numbers, by the plan."""
        plan: Any = self.plan  # which callers have required
        motion = partial(allowed_motion, chosen=plan, anywhere=anywhere)
        text, (at, health) = self._at(arrays, motion)
        found = text(at.in_coordinates(self.coordinates) if self.coordinates else at)
        return found, health()

    def _one(self, *arrays):
        """Result for one sample, with ranks by singular values if the numbers allow it."""
        if any(np.asarray(a).dtype.kind in "cO" for a in arrays):
            return self._by_plan(*arrays, anywhere=True)[0]
        arrays = [np.asarray(a, float) for a in arrays]
        motion = partial(allowed_motion_at, keep=self.keep, every=self.every)
        text, at = self._at(arrays, motion)
        if not self.coordinates:
            return text(at)
        try:
            changed = at.in_coordinates(self.coordinates)
        except SingularError:
            changed = None
        if changed is None or not np.min(at.ratios, initial=1.0) >= 1:
            raise SingularError(
                f"the coordinates {', '.join(self.labels())} do not determine the motion of model "
                f"{self.model.name!r} in this configuration: choose other joints as independent"
            )
        return text(changed)

    def labels(self):
        """Names of the independent coordinates."""
        labels = coordinate_labels(self.model)
        return [repr(labels[c]) for c in self.coordinates]

    def _trace_call(self, *arrays):
        """Traced result in a user's kernel, with a check of its health."""
        found, health = self._by_plan(*arrays, anywhere=True)
        is_good: Any = less(1, health)
        if not isinstance(is_good, (bool, np.bool_)):
            is_good.require()
        return found

    def _over_batch(self, function, arrays):
        """Results of a function of one sample for all samples."""
        named = dict(zip(self.names, map(np.asarray, arrays), strict=True))
        core = [len(i.shape) for i in self.inputs]
        return over_batch(function, named, core=core, shape=self.shape)

    def _one_by_one(self, arrays):
        """Results in Python, sample by sample."""
        self._validate(arrays)
        return self._over_batch(self._one, arrays)

    def _validate(self, arrays):
        """Raise errors for arguments of the wrong kind."""
        self.definition.validate(self.model, self.names, arrays, self.options)

    def _kernel(self, anywhere=False):
        """Kernel of result and health, compiled once."""
        if anywhere not in self.kernels:
            self.kernels[anywhere] = self._compile(anywhere)
        return self.kernels[anywhere]

    def _compile(self, anywhere):
        """Compile the kernel of result and health for closed loops."""

        def text(q, *arrays):
            require_unit_parts(self.model, q)
            return self._by_plan(q, *arrays, anywhere=anywhere)

        def reference(arrays):
            found = self._over_batch(self._one, arrays)
            return found, np.ones(np.shape(found)[: np.ndim(found) - len(self.shape)])[()]

        name, called = self.definition.name, self.definition.called
        chosen = self.coordinates or self.keep
        key = (f"loops.{name}", *self.options.values(), chosen, self.extra, anywhere)
        return kernel_for(
            self.model,
            called,
            self.inputs,
            [Argument("out0", self.shape), Argument("out1", ())],
            lambda: trace(text, self.inputs, called),
            reference=reference,
            validate=self._validate,
            key=key if self.model.timeless is self.model else None,  # instants are many
        )

    def _repair(self, arrays, found, health):
        """Result with unreliable samples recomputed one by one."""
        batch, count = np.shape(health), np.size(health)
        flat = [
            np.broadcast_to(a, batch + i.shape).reshape(count, *i.shape)
            for a, i in zip(arrays, self.inputs, strict=True)
        ]
        found, health = np.array(found).reshape(count, *self.shape), np.reshape(health, count)
        weak = (health > 0) & (health < 1)  # the pivots; at zero it is the state
        if np.any(weak):
            health = health.copy()
            again = self._kernel(anywhere=True)
            found[weak], health[weak] = again.call(*(a[weak] for a in flat))
        for k in np.flatnonzero(~(health >= 1)):
            try:
                found[k] = self._one(*(a[k] for a in flat))
            except (ShapeError, SingularError) as error:
                raise of_sample(error, np.unravel_index(k, batch)) from error
        return found.reshape(*batch, *self.shape)


# --- G, g and the rate of G ----------------------------------------------------------------------


@quantity(
    ("nv", lambda model, options: coordinate_count(model, options) + 1),
    tree=True,
    selects=("independent",),
    called="null_space",
    public=False,
    serve=with_loops(lambda at: np.concatenate([at.G, at.g[:, None]], axis=1)),
)
def allowed_velocities(model, q, qd, *, independent=None) -> Any:
    """Basis ``G``, with ``g`` as last column, of ``qdd = G ydd + g``."""
    return np.eye(model.nv, model.nv + 1, dtype=int)


@quantity(
    ("nv", coordinate_count),
    tree=True,
    selects=("independent",),
    called="null_space_rate",
    public=False,
    serve=with_loops(lambda at: at.rate_along(at.qd)),
)
def allowed_velocity_rate(model, q, qd, *, independent=None) -> Any:
    """Rate ``dG/dt`` of the basis of allowed velocities at the velocity ``qd``."""
    return np.zeros((model.nv, model.nv), dtype=int)
