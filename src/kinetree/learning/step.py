"""One control step of an environment, resets included: a text that is compiled whole.

    update        what changes at the start of a step: commands, pushes, counters
    act, physics  as many steps of the mechanics as there are to a control step
    terminate, reward, observe
    reset, observe again, in worlds whose episode is over

Kernels of the task take what they need by name; see ``Environment``.
"""

from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import ShapeError, UnknownNameError, require_known
from kinetree.expr.elementary import Condition
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import name_the_line, select
from kinetree.functional.parameters import with_parameters
from kinetree.learning.physics import Physics
from kinetree.learning.random import WORD
from kinetree.spelling import did_you_mean

FAR, FINITE = 1e6, 1e30
"""A joint variable beyond the first, or another number beyond the second, or one that is not a
number, ends the episode: the world has failed."""
RANDOM = ("uniform", "normal")
OWN = ("q", "qd", "tick", "steps", "action", "history", "force", "delay", "activation")
"""States that every environment may have; others are those that ``reset`` returns."""
_MOVES = ("q", "qd", "force", "action", "activation")  # in the steps of the mechanics
_ON_NUMBERS = SimpleNamespace(arrays={}, apply=lambda *_: None)  # where kernels have worked before
FRICTION = "friction"
"""The name of the parameter that multiplies all coefficients of friction."""


class Moved(NamedTuple):
    """How the steps of the mechanics in a control step went."""

    previous: Any
    """The action before."""
    tau: Any
    """Joint forces or controls of the last step."""
    error: Any
    """The largest error, see ``Physics``."""
    fine: Any
    """Whether the state stayed finite, as far as the steps know."""


@dataclass(frozen=True, eq=False)
class ControlStep:
    """The text of a control step."""

    model: Any
    """The mechanism."""
    physics: Physics
    """Steps of it."""
    kernels: dict
    """Of the task, by role."""
    arguments: dict
    """Shapes of arrays that do not change by themselves, by name."""
    parameters: dict
    """Names of values, by the parameter of the model that they are."""
    actions: int
    """Size of an action."""
    limits: tuple
    """Least and largest action."""
    decimation: int
    """Steps of the mechanics in a control step."""
    episode: int | None
    """Control steps after which an episode is truncated, or None."""
    delay: tuple
    """Least and largest delay of actions [steps of the mechanics]."""
    shapes: dict = field(default_factory=dict)
    """Of the states of a world, by name."""

    @property
    def history(self) -> int:
        """Number of earlier control steps whose actions may still be pending."""
        return -(-self.delay[1] // self.decimation)

    def __call__(self, state, arguments, draws, action):
        """The state after a control step, and the outputs for the agent, by name.

        Args:
            state: by name, as in ``shapes``.
            arguments: by name.
            draws: random numbers of this step.
            action: what the agent wants, (n,).
        """
        previous = state["action"]
        state, history = self.update(state, arguments, draws, action)
        state, tau, error = self._move(state, arguments, history)
        return self.finish(state, arguments, draws, history, Moved(previous, tau, error, True))

    def update(self, state, arguments, draws, action):
        """State before the steps of the mechanics, and pending actions, latest first."""
        low, high = self.limits
        action = np.array([_clip(x, low, high) for x in action])
        if "update" in self.kernels:
            values = self.values_of(state, arguments, draws, "update", action=action)
            values["previous_action"] = state["action"]
            state = self.merge(state, self.call_kernel("update", values), "update")
        return state, [action, *state.get("history", ())]

    def finish(self, state, arguments, draws, history, moved):
        """New state and outputs of a control step, from the state after its mechanics.

        Args:
            state: by name.
            arguments: by name.
            draws: random numbers of this step.
            history: actions, latest first.
            moved: how the mechanics went, ``Moved``.
        """
        state = state | {"steps": state["steps"] + 1, "action": history[0]}
        if "history" in state:
            state["history"] = np.array(history[:-1])
        fine = _is_fine(state) & moved.fine
        more = {"previous_action": moved.previous, "tau": moved.tau}
        ended = self._is_over(state, arguments, draws, more) | ~fine
        late = state["steps"] >= (self.episode or np.inf)
        truncated = ~ended & late
        reward = self._of("reward", state, arguments, draws, more | {"terminated": flag(ended)})
        final = self._of("observe", state, arguments, draws, more, "final observation")
        final = select(fine, final, 0.0)

        def begin(now):
            again = draws._replace(counter=now[0]["tick"])  # so that no draw is wasted
            state = self.begin(arguments, again)
            return _reorder(now[0], state), self.observe(state, arguments, again)

        over = ended | truncated
        state, seen = repeat(begin, (state, final), select(over, 1, 0))
        state = state | {"tick": _next(draws.counter)}
        return state, {
            "observation": seen,
            "reward": select(fine, reward, 0.0),
            "terminated": flag(ended),
            "truncated": flag(truncated),
            "final_observation": final,
            "failed": flag(~fine),
            "error": select(fine, moved.error, 0.0),
        }

    def begin(self, arguments, draws):
        """Initial state of an episode: its arrays by name."""
        values = {**arguments, **self.random_numbers("reset", draws)}
        found = self.call_kernel("reset", values)
        state = {name: np.zeros(shape)[()] for name, shape in self.shapes.items()}
        state = self.merge(state, found, "reset") | {"tick": draws.counter}
        low, high = self.delay
        if "delay" in self.shapes:
            u = draws.uniform("delay", 1)[0]
            state["delay"] = low + np.floor(u * (high - low + 1))
        return state

    def observe(self, state, arguments, draws):
        """The first observation of an episode."""
        more = {"previous_action": state["action"], "tau": np.zeros(self.model.nv)}
        return self._of("observe", state, arguments, draws, more, "first observation")

    # --- parts -------------------------------------------------------------------------------

    def _move(self, state, arguments, history):
        """State after the steps of the mechanics, last joint forces, and largest error."""
        model, friction = self._own_model(state, arguments)
        physics = self.physics.of(model, friction)
        dt, rows, states = physics.dt, physics.rows, physics.states
        t = state["steps"] * (dt * self.decimation)
        held = {n: x for n, x in state.items() if n not in _MOVES}

        def once(now):
            k, q, qd, force, activation, _, worst = now
            wanted = self._delayed_action(history, state, k)
            values = {**arguments, **held, "t": t + k * dt, "q": q, "qd": qd, "action": wanted}
            tau = self.call_kernel("act", values, model) if "act" in self.kernels else wanted
            *after, error = physics(model, t + k * dt, q, qd, tau, force, activation)
            return k + 1, *after, tau, select(error > worst, error, worst)

        force = state["force"] if rows else np.zeros(0)
        activation = state["activation"] if states else np.zeros(0)
        size = self.model.nv if "act" in self.kernels else self.actions
        start = (0.0 * t, state["q"], state["qd"], force, activation, np.zeros(size), 0.0 * t)
        _, q, qd, force, activation, tau, worst = repeat(once, start, self.decimation)
        after = {"q": q, "qd": qd} | ({"force": force} if rows else {})
        after |= {"activation": activation} if states else {}
        return state | after, tau, worst

    def driving_forces(self, state, arguments, wanted):
        """Joint forces or controls that ``act`` requests in the last step of the mechanics."""
        if "act" not in self.kernels:
            return wanted
        held = {n: x for n, x in state.items() if n not in _MOVES}
        t = (state["steps"] * self.decimation + self.decimation - 1) * self.physics.dt
        values = {**arguments, **held, "t": t, "action": wanted}
        values |= {"q": state["q"], "qd": state["qd"]}
        return self.call_kernel("act", values, self._own_model(state, arguments)[0])

    def _delayed_action(self, history, state, k):
        """Action that reaches the joints in step ``k`` of the mechanics."""
        late = state.get("delay", float(self.delay[1]))
        wanted = history[0]
        for age, old in enumerate(history[1:], start=1):
            wanted = select(k + (age - 1) * self.decimation < late, old, wanted)
        return wanted

    def _own_model(self, state, arguments):
        """Model with this world's parameters, and its friction factor or None."""
        values = {p: {**arguments, **state}[name] for p, name in self.parameters.items()}
        friction = values.pop(FRICTION, None)
        return with_parameters(self.model, values) if values else self.model, friction

    def _is_over(self, state, arguments, draws, more):
        """Whether the ``terminate`` kernel ends the episode; False without that kernel."""
        if "terminate" not in self.kernels:
            return False
        found = self._of("terminate", state, arguments, draws, more)
        if isinstance(found, (bool, np.bool_)):
            return bool(found)
        return found if isinstance(found, Condition) else found > 0.5

    def _of(self, role, state, arguments, draws, more, what=None):
        """Result of the kernel of a role, such as "reward", at a state."""
        values = self.values_of(state, arguments, draws, role, what=what, action=state["action"])
        return self.call_kernel(role, values | more)

    def values_of(self, state, arguments, draws, role, what=None, **more):
        """Values that kernels may take as inputs, by name: state, arguments, time, forces."""
        t = state["steps"] * (self.physics.dt * self.decimation)
        values = {**arguments, **state, "t": t, **more}
        if self.physics.names:
            values["contact_force"] = self.physics.forces_of(state["force"])
        return values | self.random_numbers(role, draws, what)

    def random_numbers(self, role, draws, what=None):
        """Random inputs of the kernel of a role, by kind; {} if it takes none."""
        return random_inputs(self.kernels[role], what or role, draws)

    def call_kernel(self, role, values, model=None):
        """Result of the kernel of a role, with its inputs picked from ``values`` by name."""
        kernel = self.kernels[role]
        names = tuple(kernel.signature.parameters)[1:]
        missing = [n for n in names if n not in values]
        if missing:
            known = sorted({*values, *RANDOM})
            raise UnknownNameError(
                f"Environment: {role} kernel {kernel.__name__!r} takes {missing[0]!r}; "
                f"{did_you_mean(missing[0], known)}"
            )
        given = [np.asarray(x).dtype for x in values.values()]
        with name_the_line(kernel, _ON_NUMBERS) if object in given else nullcontext():
            return kernel.function(model or self.model, **{n: values[n] for n in names})

    def merge(self, state, found, role):
        """State updated with the dict that a kernel returned; errors name wrong entries."""
        name = self.kernels[role].__name__
        if not isinstance(found, dict):
            raise ShapeError(
                f"Environment: {role} kernel {name!r} must return a dict of arrays by name, such "
                f"as {{'q': q, 'qd': qd}}, got {type(found).__name__}"
            )
        for key, value in found.items():
            require_known(
                key, sorted(self.shapes), f"Environment: {role} kernel {name!r} returns {key!r}"
            )
            if np.shape(value) != self.shapes[key]:
                raise ShapeError(
                    f"Environment: {role} kernel {name!r} must return {key!r} of shape "
                    f"{self.shapes[key]}, got {np.shape(value)}"
                )
        return state | found


def random_inputs(kernel, what, draws):
    """Random numbers that a kernel takes as inputs, by kind."""
    parameters, found = kernel.signature.parameters, {}
    for kind in RANDOM:
        if kind in parameters:
            n = parameters[kind].annotation[0]
            found[kind] = getattr(draws, kind)(f"{what}, {kind}", n)
    return found


def _clip(x, low, high):
    """Number limited to the interval from ``low`` to ``high``, traceable."""
    return select(x < low, low, select(x > high, high, x))


def flag(condition):
    """Number 1.0 where a condition holds, else 0.0, traceable."""
    return select(condition, 1.0, 0.0)


def _next(counter):
    """Number of the next control step, wrapped to 0 after 2²⁴."""
    return select(counter >= WORD * WORD - 1, 0.0, counter + 1)


def _is_fine(state):
    """Whether positions and velocities are within ``FAR``, and all numbers finite."""
    fine = True
    for name, value in state.items():
        most = FAR if name in ("q", "qd") else FINITE
        for x in np.ravel(value) if name not in ("tick", "steps") else ():
            fine = (np.abs(x) < most) & fine
    return fine


def _reorder(old, new):
    """Dict of new state values in the order of the old ones."""
    return {name: new[name] for name in old}
