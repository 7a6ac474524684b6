"""Integrators: a text for one step, on the manifold, for numbers of any kind.

A step is traced into a kernel where all that acts on the mechanism can be traced; otherwise the
same text runs on arrays with batch axes. For another method, subclass ``Integrator`` and pass an
instance to ``simulate``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from kinetree.arrays.kinds import Array
from kinetree.integration.manifold import settle
from kinetree.model import Model


class Stages(NamedTuple):
    """Rates inside a step, for its interpolant: of local coordinates, velocities and work.

    Arrays (..., stages, nv), the last (..., stages).
    """

    u: Any
    qd: Any
    work: Any


class Stepped(NamedTuple):
    """The end of a step.

    Attributes:
        q: positions at the end.
        qd: velocities at the end.
        work: of all joint forces during the step [J].
        error: estimated errors of local coordinates and velocities, where the method has them.
        stages: rates, where the method has its own interpolant.
        defect: size of the last correction, relative, of methods that solve an equation.
        checks: of a step of methods for mechanisms with constraints, (..., 6).
    """

    q: Any
    qd: Any
    work: Any
    error: tuple | None = None
    stages: Stages | None = None
    defect: Any = None
    checks: Any = None


def is_called(field) -> bool:
    """Whether compiled steps call a field instead of inlining it, see ``step.OneCopy``."""
    return getattr(field, "is_called", False)


class Integrator(ABC):
    """An integration method. Immutable and hashable: kernels are kept for each.

    Attributes:
        name: of the method.
        order: the error after a given time is proportional to this power of the step.
        error_order: order of the embedded result that errors are estimated with; 0 for none.
        differentiates: whether it takes derivatives of all forces, which then must be traceable.
        solves: whether it solves an equation by iteration, so that ``defect`` must be checked.
        closes: whether it ends steps on the constraints of the mechanism, and has ``checks``.
        by_action: whether steps follow from the energies of the mechanism, as functions of its
            state alone.
        on_arrays: whether its text calls nothing on arrays that takes long to compile.
        arrays_need_rates: whether that is so only of trees whose velocities are rates of positions.
    """

    name: str
    order: int
    error_order: int = 0
    differentiates: bool = False
    solves: bool = False
    closes: bool = False
    by_action: bool = False
    on_arrays: bool = False
    arrays_need_rates: bool = False

    @abstractmethod
    def step(
        self, field: Callable, model: Model, t: Any, h: Any, q: Array, qd: Array, tau: Array
    ) -> Stepped:
        """State after one step of length ``h`` [s] from time ``t``.

        Args:
            field: a ``Field``, which gives accelerations.
            model: the mechanism.
            t: time at the start [s].
            h: length of the step [s].
            q: joint positions at the start.
            qd: joint velocities at the start.
            tau: joint forces that are held during the step.
        """

    def advance(
        self, field: Callable, model: Model, t: Any, h: Any, q: Array, qd: Array, tau: Array
    ) -> Stepped:
        """``step`` from the state with normalised quaternions and rotation vectors.

        Quaternions are brought to unit length, rotation vectors below half a turn.
        """
        q, qd = settle(model, q, qd)
        return self.step(field, model, t, h, q, qd, tau)

    def doubt(self, after: Stepped) -> Any:
        """Estimated defect of a step's implicit equations; None for explicit methods."""
        return after.defect if self.solves else None

    def interpolation(self, theta: float) -> Array | None:
        """Stage weights at fraction ``theta`` of a step; None without stages."""
        return None

    def __call__(self, *args):
        """Step, as by ``step``, so that a kernel takes an integrator for an option."""
        return self.step(*args)
