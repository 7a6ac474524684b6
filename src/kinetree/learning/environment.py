"""Environments for reinforcement learning: many worlds, one compiled call for a control step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.runtime.threads import run_threaded
from kinetree.errors import ModelError, ShapeError, UnknownNameError, need
from kinetree.functional.parameters import parameter
from kinetree.integration.integrator import Integrator
from kinetree.learning.engine_steps import EnginePhysics, EngineSteps, chosen_physics
from kinetree.learning.physics import setup_of
from kinetree.learning.programs import OUTPUTS, compile_program
from kinetree.learning.random import words
from kinetree.learning.step import FRICTION, OWN, RANDOM, ControlStep
from kinetree.learning.task import SEES, action_size, kernels_of, starts_of, try_kernels
from kinetree.model import Model
from kinetree.model.arrays import as_seconds, whole_number
from kinetree.model.cameras import Camera
from kinetree.rendering.cameras import render
from kinetree.simulation.forces.actuators import TorqueSpeed
from kinetree.simulation.rollouts.inputs import sample_shape
from kinetree.simulation.setup import laws_of
from kinetree.spelling import did_you_mean, explains_itself
from kinetree.worlds.world import World


@explains_itself
class Environment:
    """Many worlds with one task; a control step of all of them is one compiled call.

    The task is kernels (``kinetree.kernel``) for one world. Each takes the model, and then what it
    needs by name:

        q, qd            state of the mechanism
        t, steps         time [s] and control steps since the episode began
        action           of the agent, within action_limits; previous_action: the last one
        tau              joint forces that act returned last, or the controls
        contact_force    of rigid contacts [N], (contacts, 3): normal, and two tangents
        terminated       1 or 0, for the reward
        uniform: (n,)    random numbers between 0 and 1, drawn anew in every step
        normal: (n,)     the same with mean 0 and variance 1
        ...              arguments and values of the episode, by their names

    Args:
        model: the mechanism, or a ``World``: then its contact is the default.
        worlds: how many.
        observe: returns what the agent sees, (k,).
        reward: returns a number.
        reset: returns how an episode begins: a dict with ``q`` and ``qd``, at rest where there is
            no ``qd``, and values that belong to the episode under names of your own (a command, a
            mass, a gain), which kernels take from then on.
        terminate: returns whether the episode ends, such as by a fall, a condition; None: never.
        act: returns joint forces, (nv,), from ``action: (n,)``; called in every step of the
            mechanics. None: actions are the controls of the actuators, or joint forces where the
            model has none.
        update: returns values that change at the start of every control step, a dict as from
            ``reset``: commands, counters, ``qd`` after a push.
        contact: a ``Scene`` (rigid), ``TimeStepping``, ``SoftContact``, or None.
        dt: length of a step of the mechanics [s].
        decimation: steps of the mechanics in a control step.
        episode: control steps after which an episode is truncated; None: never.
        delay: of actions, steps of the mechanics; ``(least, most)``: drawn for every episode.
        action_limits: least and largest entry of an action.
        arguments: arrays by name: for all worlds (as annotated), or with an axis for worlds first.
            They are in ``self.arguments`` and may be changed in place, as a curriculum does.
        parameters: parameters of the model in every world: ``{"mass:trunk": "load"}`` takes the
            value of this name that ``reset`` or ``update`` returned, or an argument. ``"friction"``
            multiplies all coefficients of friction of rigid contact.
        integrator: where nothing is rigid; a name or an instance.
        forces: kernels ``(model, t, q, qd)`` of further joint forces.
        friction: of joints, as in ``rollout``.
        limits: of joints, as in ``rollout``; None: joints pass them.
        motors: ``kinetree.TorqueSpeed`` by name of the actuator, as in ``simulate``.
        seed: of all random numbers.
        device: ``"cpu"``, or a device of torch or CuPy such as ``"cuda"``.
        arrays: ``"numpy"``, ``"torch"`` or ``"cupy"``: what comes back; torch tensors by default
            where the device is not the CPU.
        dtype: ``"float32"`` or ``"float64"``; by default float64 on the CPU, float32 elsewhere.

    Attributes:
        model: the mechanism.
        worlds: how many.
        state: arrays of all worlds by name, such as ``q``; may be changed in place between steps.
        arguments: arrays by name; may be changed in place.
        observation_size: entries of an observation.
        action_size: entries of an action.
        step_time: length of a control step [s].
        program: the ``ControlStep`` that is compiled.
    """

    def __init__(
        self,
        model: Model | World,
        worlds: int,
        *,
        observe: Callable,
        reward: Callable,
        reset: Callable,
        terminate: Callable | None = None,
        act: Callable | None = None,
        update: Callable | None = None,
        contact: Any = None,
        dt: float = 5e-3,
        decimation: int = 1,
        episode: int | None = 1000,
        delay: int | tuple[int, int] = 0,
        action_limits: tuple[float, float] = (-1.0, 1.0),
        arguments: Mapping[str, ArrayLike] | None = None,
        parameters: Mapping[str, str] | None = None,
        integrator: str | Integrator = "semi_implicit_euler",
        forces: Callable | Sequence[Callable] = (),
        friction: Any = "auto",
        limits: Any = "auto",
        motors: Mapping[str, TorqueSpeed] | None = None,
        seed: int = 0,
        device: Any = "cpu",
        arrays: str | None = None,
        dtype: str | None = None,
    ):
        laws = {"friction": friction, "limits": limits, "motors": motors}
        if isinstance(model, World):
            own = model.simulation_start()
            contact = own.contact if contact is None else contact
            laws, model = own.laws(**laws), own.model
        self.model, self.worlds = model, whole_number(worlds, "worlds", least=1)
        kernels = kernels_of(
            observe=observe, reward=reward, reset=reset, terminate=terminate, act=act, update=update
        )
        decimation = whole_number(decimation, "decimation", least=1)
        dt = as_seconds(dt, "dt", least=0.0)
        self._place = ArrayPlace(device, arrays, dtype)
        parameters = dict(parameters or {})
        shapes, self.arguments = self._arguments(arguments or {}, kernels, parameters)
        controls = act is None and bool(model.actuators)
        if not self._place.on_host:  # rows of steps on a GPU are for contacts
            on_device = laws_of(model, laws["friction"], laws["limits"], rigid=False)
            laws["friction"], laws["limits"] = on_device
        setup = setup_of(
            model,
            contact,
            controls=controls,
            integrator=integrator,
            forces=forces,
            **laws,
            parameters=tuple(p for p in parameters if p != FRICTION),
        )
        numbers = {
            name: np.asarray(self._place.numpy(a), float).reshape(-1, *shapes[name])[0][()]
            for name, a in self.arguments.items()
        }
        physics = chosen_physics(
            setup,
            lambda: starts_of(model, kernels["reset"], numbers),
            dt,
            dtype=self._place.dtype,
            on_device=not self._place.on_host,
        )
        self.action_size = action_size(model, act)
        self.program = ControlStep(
            model,
            physics,
            kernels,
            shapes,
            parameters,
            self.action_size,
            tuple(map(float, action_limits)),
            decimation,
            episode,
            _delay_range(delay),
        )
        by_engine = isinstance(physics, EnginePhysics)
        self._engine = EngineSteps(self.program, self.worlds) if by_engine else None
        self.step_time, self.episode = dt * decimation, episode
        self._kernels: dict = {}
        self.observation_size = try_kernels(self.program, numbers)
        self._world = self._place.array(np.arange(self.worlds))
        self.state: dict[str, Array] = {}
        self.reset(seed=seed)

    def __repr__(self):
        return (
            f"<Environment of {self.worlds} worlds of {self.model.name!r}: observations "
            f"({self.observation_size},), actions ({self.action_size},), {self.step_time:g} s a "
            f"step, {self._place}>"
        )

    def reset(self, seed: int | None = None, *, worlds: ArrayLike | None = None) -> Array:
        """Start new episodes in all or some worlds; returns first observations (worlds, k).

        Args:
            seed: of all random numbers from now on; by default the sequence continues.
            worlds: whether each begins a new one, (worlds,); by default all do.
        """
        if seed is not None:
            self._seed = self._place.array(words(seed))
            self.state["tick"] = self._place.array(np.zeros(self.worlds))
        tick = self.state["tick"]
        *begun, seen = self._call("reset", self._seed, self._world, tick, *self.arguments.values())
        begun = dict(zip(self.program.shapes, begun, strict=True))
        if worlds is not None:
            which = self._place.array(worlds) > 0
            for name, new in begun.items():
                old = self.state[name]
                begun[name] = self._place.where(which, new, old)
        self.state = begun | {"tick": tick + 1}
        return self._place.result(seen)

    def step(self, action: ArrayLike) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
        """Take a control step in all worlds; finished episodes restart.

        Args:
            action: (worlds, n), of the kind of arrays that come back, or of NumPy's.

        Returns:
            Observations (worlds, k), those of the new episode where one has begun; rewards,
            whether the task ended the episode (terminated), and whether its length did (truncated),
            (worlds,). A dict: ``final_observation``, that before a new episode
            began; ``failed``, where the state was no longer finite; ``error``, the largest
            error of a velocity at a rigid contact [m/s].
        """
        action = self._place.array(action)
        if tuple(action.shape) != (self.worlds, self.action_size):
            raise ShapeError(
                f"Environment.step takes actions of shape (worlds, n) = "
                f"({self.worlds}, {self.action_size}), got {tuple(action.shape)}"
            )
        given = self._seed, self._world, *self.state.values(), *self.arguments.values(), action
        results = self._call("step", *given) if self._engine is None else self._by_engine(*given)
        n = len(self.state)
        self.state = dict(zip(self.program.shapes, results[:n], strict=True))
        info = dict(zip(OUTPUTS, results[n:], strict=True))
        seen, reward = (self._place.result(info.pop(k)) for k in ("observation", "reward"))
        ended, late, failed = (info.pop(k) > 0.5 for k in ("terminated", "truncated", "failed"))
        info["final_observation"] = self._place.result(info["final_observation"])
        return seen, reward, ended, late, info | {"failed": failed}

    def render(
        self,
        camera: str | Camera | None = None,
        what: str | Sequence[str] = "color",
        **options: Any,
    ) -> Array | dict[str, Array]:
        """Camera image of every world at present, (worlds, rows, columns, ...).

        On a GPU depths, shapes and bodies are arrays there, of the kind of ``state``. Colours are
        NumPy arrays.

        Args:
            camera: a ``Camera`` or the name of one of the model; by default its first one.
            what: as in ``kinetree.render``: ``"depth"`` for agents that act from it.
            **options: as in ``kinetree.render``.
        """
        q = self.state["q"]
        if self._place.on_host or "color" in what:  # a kind, or a list of kinds
            q = np.asarray(self._place.numpy(q), dtype=float)
        return render(self.model, q, camera, what, **options)

    # --- what goes in ------------------------------------------------------------------------

    def _arguments(self, given, kernels, parameters):
        """Shapes and arrays of the kernels' arguments by name."""
        wanted = {n for k in kernels.values() for n in tuple(k.signature.parameters)[1:]}
        own = {value: name for name, value in parameters.items() if value not in wanted}
        wanted |= set(own)
        shapes, found = {}, {}
        for name, value in given.items():
            if name in (*OWN, *SEES, *RANDOM):
                raise UnknownNameError(f"arguments cannot hold {name!r}, which kernels get anyway")
            if name not in wanted:
                raise UnknownNameError(
                    f"arguments hold {name!r}, which no kernel of this environment takes; "
                    f"{did_you_mean(name, sorted(wanted))}"
                )
            array = self._place.array(value)
            shape = sample_shape(self.model, name, array, list(kernels.values()), timed=False)
            if name in own:  # no kernel says what one sample is
                shape = () if own[name] == FRICTION else parameter(self.model, own[name]).shape
            if tuple(array.shape) not in (shape, (self.worlds, *shape)):
                raise ShapeError(
                    f"argument {name!r} must have shape {shape} or, one for each world, "
                    f"{(self.worlds, *shape)}; got {tuple(array.shape)}"
                )
            shapes[name], found[name] = shape, array
        return shapes, found

    def _by_engine(self, *given):
        """Results of a control step whose mechanics the engine computes."""
        *after, actions = self._call("update", *given)
        state = dict(zip(self.program.shapes, after, strict=True))
        arguments = {name: self._place.numpy(x) for name, x in self.arguments.items()}
        engine: Any = self._engine
        numbers = {name: self._place.numpy(x) for name, x in state.items()}
        taken = engine(numbers, arguments, self._place.numpy(actions))
        state |= {name: self._place.array(x) for name, x in taken.after.items()}
        more = (*taken.before, taken.wanted, taken.error, taken.failed)
        return self._call(
            "finish",
            self._seed,
            self._world,
            *state.values(),
            *self.arguments.values(),
            actions,
            self.state["action"],
            *map(self._place.array, more),
        )

    # --- compiled ----------------------------------------------------------------------------

    def _call(self, what, *arrays):
        """Results of the compiled program ``what`` (step or reset) for all worlds."""
        kernel = self._kernels.get(what)
        if kernel is None:
            kernel = self._kernels[what] = compile_program(self.program, what)
        if not self._place.on_host:
            return kernel.call(*arrays)
        dtype = self._place.dtype
        variant = kernel.variant(dtype, wide=True, samples=self.worlds)
        host = [self._place.numpy(a) for a in arrays]
        return self._place.wrapped(run_threaded(variant.ufunc, host, kernel, (self.worlds,), dtype))


def _delay_range(delay):
    """Smallest and largest delay of actions, in steps of the mechanics."""
    both = delay if isinstance(delay, tuple) else (delay, delay)
    return tuple(whole_number(x, "delay") for x in both)


class ArrayPlace:
    """Where arrays are, of which library and precision."""

    def __init__(self, device, arrays, dtype):
        self.device = str(device)
        self.on_host = self.device == "cpu"
        self.kind = arrays or ("numpy" if self.on_host else "torch")
        if self.kind not in ("numpy", "torch", "cupy") or (self.kind == "numpy") > self.on_host:
            raise ModelError(
                f"arrays must be 'numpy' (device 'cpu'), 'torch' or 'cupy', got {arrays!r} for "
                f"device {self.device!r}"
            )
        if self.kind == "cupy" and self.on_host:
            raise ModelError("arrays='cupy' are on a GPU: say device='cuda'")
        self.dtype = dtype or ("float64" if self.on_host else "float32")
        if self.dtype not in ("float32", "float64"):
            raise ModelError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
        extra = {"torch": "torch", "cupy": "gpu"}.get(self.kind, "")
        self.library = need(self.kind, f"arrays={self.kind!r}", extra)

    def __repr__(self):
        return f"{self.dtype} in {self.kind} arrays on {self.device}"

    def array(self, x):
        """``x`` as an array of the environment's library and device, copied only if needed."""
        if self.kind == "torch":
            dtype = getattr(self.library, self.dtype)
            if not self.library.is_tensor(x):
                x = self.library.as_tensor(np.asarray(x, self.dtype))
            return x.detach().to(device=self.device, dtype=dtype)
        return self.library.asarray(x, dtype=self.dtype)

    def numpy(self, x):
        """NumPy array of an environment's array, sharing memory on the CPU."""
        if self.kind == "torch":
            return x.cpu().numpy()
        return x.get() if self.kind == "cupy" else x

    def wrapped(self, results):
        """Results of compiled CPU code as a list of arrays of the environment's library."""
        if self.kind == "torch":
            return [self.library.from_numpy(x) for x in results]
        return list(results)

    def result(self, x):
        """Output for the agent, converted to float32."""
        if self.kind == "torch":
            return x.float()
        return x.astype("float32", copy=False)

    def where(self, which, new, old):
        """Elementwise choice by world: ``new`` in the worlds of mask ``which``, else ``old``."""
        which = which.reshape(-1, *[1] * (len(old.shape) - 1))
        return self.library.where(which, new, old)
