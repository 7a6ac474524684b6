# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Controllers of parts of a world: each is given the state of its part alone.

Those that are kernels, and others in compiled code, are called by the machine without Python.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kinetree.codegen.procedures import procedure, record
from kinetree.codegen.tied import Code, run, tied_code, tied_control, tied_record
from kinetree.errors import ShapeError
from kinetree.simulation.controllers import as_controller, call_with_model


@record
class PartLoop:
    """A controller of a part, and the code of those that follow.

    Attributes:
        q, qd, out: of the world.  own_q, own_qd, own: of the part.
        q_at, v_at: numbers of its variables, ``nq`` and ``nv``, in the world.
        inner: code of the controller.  rest: that of the next part.
        first, last: whether it is the first, which clears the forces, or the last.
        size: number of forces of the world.
        status: how many calls found no answer, (1,).
    """

    q: "float[:]"
    qd: "float[:]"
    out: "float[:]"
    own_q: "float[:]"
    own_qd: "float[:]"
    own: "float[:]"
    q_at: "int[:]"
    v_at: "int[:]"
    nq: int
    nv: int
    inner: Code
    rest: Code
    first: bool
    last: bool
    size: int
    status: "int[1]"


@procedure
def act_on_part(s: PartLoop) -> None:
    """Compute the joint forces of one part's controller, then those of the parts after it."""
    if s.first:
        for i in range(s.size):
            s.out[i] = 0.0
    for i in range(s.nq):
        s.own_q[i] = s.q[s.q_at[i]]
    for i in range(s.nv):
        s.own_qd[i] = s.qd[s.v_at[i]]
    run(s.inner)
    if s.inner.status[0] != 0:
        s.inner.status[0] = 0
        s.status[0] += 1
        return
    for i in range(s.nv):
        s.out[s.v_at[i]] = s.own[i]
    if not s.last:
        run(s.rest)
        if s.rest.status[0] != 0:
            s.rest.status[0] = 0
            s.status[0] += 1


class PartControllers:
    """A controller of a world, made of controllers of its parts: ``tau = parts(t, q, qd)``.

    Args:
        world: the world.
        given: by name of the part, joint forces of the part, or a function ``(t, q, qd)`` of its
            state that returns them.
    """

    def __init__(self, world: Any, given: Mapping[str, Any]):
        self.model = world.model
        self.key: tuple[tuple[str, Any], ...] = tuple(given.items())
        self._parts: list[tuple] = []
        for name, controller in given.items():
            part = world[name]
            at = part.q_indices, part.v_indices
            if not callable(controller):
                numbers = np.asarray(controller, dtype=float)
                if numbers.shape != at[1].shape:
                    raise ShapeError(
                        f"tau of {name!r} must be {len(at[1])} numbers, one for each of its "
                        f"velocities, or a controller; got shape {numbers.shape}"
                    )
            own = getattr(controller, "model", None)
            if own is not None and (own.nq, own.nv) != (len(at[0]), len(at[1])):
                raise ShapeError(
                    f"the controller of {name!r} is one of model {own.name!r} with {own.nq} "
                    f"positions and {own.nv} velocities; the part has {len(at[0])} and {len(at[1])}"
                )
            self._parts.append((name, controller, at, own))

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Joint forces of the world, (..., nv)."""
        tau = np.zeros(qd.shape)
        for name, controller, (q_at, v_at), _ in self._parts:
            found = controller
            if callable(controller):
                found = np.asarray(controller(t, q[..., q_at], qd[..., v_at]), dtype=float)
                if found.shape[-1:] != v_at.shape:
                    raise ShapeError(
                        f"the controller of {name!r} must return {len(v_at)} joint forces, got "
                        f"shape {found.shape}"
                    )
            tau[..., v_at] = found
        return tau

    def is_same(self, other: Any) -> bool:
        """Whether another object has the same controllers for the same parts."""
        others: tuple = getattr(other, "key", ())
        if len(self.key) != len(others):
            return False
        pairs = zip(self.key, others, strict=True)
        return all(a == x and b is y for (a, b), (x, y) in pairs)

    def reset(self) -> None:
        """Reset the internal state of all controllers that have a ``reset`` method."""
        for _, controller, _, _ in self._parts:
            if hasattr(controller, "reset"):
                controller.reset()

    def compiled_control(self, model: Any) -> "CompiledParts | None":
        """``CompiledParts`` of all controllers; None if one of them is Python code."""
        if model.couplings:
            return None
        found = []
        for _, controller, at, own in self._parts:
            made_by: Any = getattr(controller, "compiled_control", None)
            made = made_by(own) if made_by is not None else None
            if made is None:
                return None
            found.append((made, at))
        return CompiledParts(self, found) if found else None


class CompiledParts:
    """Controllers of parts for loops of compiled code.

    Args:
        original: the same for Python.
        parts: of each part its compiled controller, and the numbers of its variables.
    """

    def __init__(self, original: PartControllers, parts: list):
        self.original, self._parts = original, parts

    def tie(self, t, q, qd, out) -> Code:
        """Bind the compiled controllers to state arrays; returns their machine code."""
        rest, last = tied_code(None), True
        for k in reversed(range(len(self._parts))):
            made, (q_at, v_at) = self._parts[k]
            own_q, own_qd, own = (np.zeros(len(x)) for x in (q_at, v_at, v_at))
            loop = PartLoop(
                q=q,
                qd=qd,
                out=out,
                own_q=own_q,
                own_qd=own_qd,
                own=own,
                q_at=np.array(q_at, dtype=np.int64),
                v_at=np.array(v_at, dtype=np.int64),
                nq=len(q_at),
                nv=len(v_at),
                inner=tied_control(made, t, own_q, own_qd, own),
                rest=rest,
                first=k == 0,
                last=last,
                size=len(out),
            )
            rest, last = tied_record(act_on_part, loop), False
        return rest

    def expect(self, times: np.ndarray) -> None:
        """Prepare controllers that plan ahead for the times of the coming motion."""
        for made, _ in self._parts:
            if hasattr(made, "expect"):
                made.expect(times)

    def tell(self) -> None:
        """Issue the warnings that compiled controllers have collected."""
        for made, _ in self._parts:
            if hasattr(made, "tell"):
                made.tell()

    def call(self, t, q, qd) -> np.ndarray:
        """Joint forces (..., nv) of all parts' controllers at given times and states."""
        tau = np.zeros(qd.shape)
        for made, (q_at, v_at) in self._parts:
            tau[..., v_at] = made.call(t, q[..., q_at], qd[..., v_at])
        return tau


def control_of(model: Any, controller: Any) -> Any:
    """Compiled form of a controller for step loops; None if it is Python code."""
    checked = as_controller(call_with_model(controller, model), model, (model.nv,))
    kernel = getattr(checked, "as_kernel", None)
    return None if kernel is None else kernel()
