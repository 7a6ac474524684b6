"""Calls of all public functions, and functions whose derivatives are checked."""

import functools
import inspect
from dataclasses import dataclass

import numpy as np

import kinetree as kt
from kinetree.quantities import FUNCTIONS

ON_HOST = tuple(name for name, f in FUNCTIONS.items() if hasattr(f, "is_on_host"))
"""Those that compute with NumPy, on the CPU, whatever they are given."""

OPTIONS = {"frame": "aligned", "rows": ("x",), "damping": 0.1}
LEFT_OUT = ("relative_to", "kind", "method", "given", "friction", "rotors", "tolerance",
            "part", "joint", "loop_tau", "independent", "near", "activation")  # fmt: skip
ELSEWHERE = {("tau", kt.joint_reactions), ("tau", kt.sensor_readings), ("tau", kt.maximal_state),
              ("at", kt.maximal_state), ("at", kt.generalized_state),
              ("rows", kt.generalized_velocity)}  # fmt: skip
"""Left out, too: names that mean something else there, and what belongs to another computation."""
VECTORS = ("point", "force", "torque", "at")


@dataclass
class States:
    """Random states of a model, which close its loops."""

    model: kt.Model
    count: int
    rng: np.random.Generator

    def __post_init__(self):
        self.q = self.model.random_configuration(self.rng, self.count)
        self.qd = self.rng.normal(size=(self.count, self.model.nv))
        if self.model.loops:
            q = kt.loops.assemble(self.model)
            self.q = np.repeat(np.asarray(q)[np.newaxis], self.count, 0)
            self.qd = kt.loops.project_velocity(self.model, self.q, self.qd)

    def arguments(self, function):
        """Arguments of a function but the model, by name."""
        found = {}
        for name in list(inspect.signature(function).parameters)[1:]:
            if name == "name":
                found[name] = self.model.body_names[-1]
            elif name in LEFT_OUT or (name, function) in ELSEWHERE:
                continue
            elif name in OPTIONS:
                found[name] = OPTIONS[name]
            elif name in ("q", "qd"):
                found[name] = getattr(self, name)
            elif name == "poses":
                found[name] = kt.poses(self.model, self.q)
            elif name == "state":
                found[name] = kt.maximal_state(self.model, self.q, self.qd)
            else:
                found[name] = self.rng.normal(size=(self.count, *self._shape(function, name)))
        if function is kt.task_freedom:
            found["q"], found["point"] = found["q"][0], None
        return found

    def _shape(self, function, name):
        n, is_task = self.model.body_count, "task_space" in function.__name__
        shapes = {"f_ext": (n, 6), "torques": (n, 3), "velocities": (n, 6), "t": ()}
        if name == "controls":
            return (len(self.model.actuators),)
        if name in ("acceleration", "velocity") or (name == "force" and is_task):
            return (len(OPTIONS["rows"]),)
        return (3,) if name in VECTORS else shapes.get(name, (self.model.nv,))


def converted(arguments, convert):
    """The arguments with all arrays converted, also in records."""

    def of(x):
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(of, x))
        return convert(x) if isinstance(x, np.ndarray) else x

    return {n: of(x) for n, x in arguments.items()}


def leaves(result):
    """All arrays of a result; what was not asked for is None there."""
    if isinstance(result, tuple):
        return [leaf for part in result if part is not None for leaf in leaves(part)]
    return [result]


# --- Functions of arrays of any library whose derivatives are checked ----------------------------


DIFFERENTIABLE = ("inverse dynamics", "forward dynamics", "kinematics")


def differentiable_functions(model):
    """Functions of three arrays (..., nv), by ``DIFFERENTIABLE``."""
    tip = model.body_names[-1]
    return {
        "inverse dynamics": functools.partial(kt.inverse_dynamics, model),
        "forward dynamics": functools.partial(kt.forward_dynamics, model),
        "kinematics": lambda q, qd, _: kt.velocity(model, q, qd, tip),
    }


def end_of_rollout(model, *, steps=4, **options):
    """A function of ``q0``, ``qd0`` and ``tau``: where a rollout ends."""

    def end(q0, qd0, tau):
        motion = kt.rollout(
            model, q0, qd0, tau, steps=steps, dt=0.05, integrator="semi_implicit_euler", **options
        )
        return motion.q[-1], motion.qd[-1]

    return end
