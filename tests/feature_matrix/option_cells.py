"""Options of ``simulate`` and ``rollout``, each for every mechanism: what is passed, what is right.

Every parameter of the two functions has cells: one for each integrator, way to keep constraints and
kind of contact that is registered, a few for others. A new one enters by existing, or fails the
test until somebody says here what to pass.

A short step has to end where the reference leads, whoever takes it; its energies have to be those
of the states, and loops to stay closed. Steps run as texts, without machine code: compiling every
cell would take minutes, and ``motion_checks`` has compiled steps of every mechanism.
"""

import inspect
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np
from feature_matrix.checks import max_of, passive
from feature_matrix.features import case
from feature_matrix.loop_checks import passive_energy
from feature_matrix.motion_checks import at_time, short
from feature_matrix.reference import Reference
from feature_matrix.walk import Checked, Outcome, require_named

import kinetree as kt
from kinetree.contact import EventDriven, Scene, SoftContact, TimeStepping
from kinetree.contact.attached import attach
from kinetree.errors import KinetreeError
from kinetree.functional import kernel as kernels
from kinetree.functional.call import flatten
from kinetree.loops.stepping import options
from kinetree.loops.stepping.options import CONSTRAINTS
from kinetree.model import Actuator, Limits
from kinetree.model.geometry import Geometry, Plane, Sphere
from kinetree.simulation import INTEGRATORS
from kinetree.simulation.compatibility import conflicts
from kinetree.simulation.rollouts import transition
from kinetree.simulation.setup import Choices, compose_setup
from kinetree.spatial import Plucker

OPTIONS = {field.name for field in fields(Choices)}
"""Names of what a setup is composed of."""

START = {
    "simulate": ("model", "q0", "qd0", "duration", "dt"),
    "rollout": ("model", "q0", "qd0", "tau", "steps", "dt"),
}
"""Parameters that every cell passes."""

CONTACTS: dict = {
    SoftContact: lambda scene: SoftContact(scene, stiffness=1e4, damping=0.1),
    TimeStepping: TimeStepping,
    EventDriven: EventDriven,
}
"""What to pass for a kind of contact; nothing touches."""

STEPS = (
    "kinetree.simulation",
    "kinetree.integration",
    "kinetree.contact.stepping",
    "feature_matrix",
)
"""Where kernels that are long, and different in every cell, come from."""

TOLERANCES = ("rtol", "atol", "max_step")
"""Options of steps that adapt, which few integrators can do."""

_SMOOTH = {"friction": "smooth", "limits": "stiff"}

COARSE = 10
"""Steps of time stepping with loops, which are of the first order, in the short time."""


# --- mechanisms ----------------------------------------------------------------------------------


class Bench:
    """A case whose mechanism has what options are about: a motor, limits, shapes that are apart."""

    def __init__(self, feature):
        self.case = c = case(feature)
        self.h, self.last = short(c), c.ref.count
        self.joint = next(
            (i for i in reversed(c.ref.leaders)
             if c.plain.joint[i].nv == 1 and c.plain.joint[i].rates_are_velocities), None
        )  # fmt: skip
        shapes = [Geometry(0, Plane(), Plucker(np.eye(3), np.array([0, 0, -1e3 * c.length])))]
        if self.last:
            shapes.append(Geometry(self.last, Sphere(1e-3 * c.length)))
        motors, limits = (), {}
        if self.joint is not None:
            motors = (Actuator("motor", self.joint, gear=(2.0,)),)
            at = c.q[c.plain.q_slice[self.joint]]
            limits[c.plain.joint_names[self.joint - 1]] = Limits(at - 1.0, at + 1.0)
        self.model = c.model.replace(geometry=tuple(shapes), actuators=motors, limits=limits)
        self.found, self.choices = {}, {}

    @property
    def column(self):
        """Number of the velocity variable of the joint that is driven."""
        return self.case.plain.v_slice[self.joint].start

    @cached_property
    def driven(self):
        """The mechanism with a servo in the place of its motor."""
        if self.joint is None:
            return self.model
        law = {"bias": (0.0, -0.5 * self.case.force, -0.3 * self.case.force)}
        return self.model.replace(actuators=[Actuator("servo", self.joint, (2.0,), **law)])

    @cached_property
    def scene(self):
        return Scene(self.model)

    @cached_property
    def force(self):
        """On the last body, at its origin, along the axes of the base."""
        return np.concatenate([self.case.point, self.case.vector]) * self.case.force

    @cached_property
    def frictionless(self):
        """The case without dry friction."""
        import copy

        c, other = self.case, copy.copy(self.case)
        parts = [*zip(c.plain.joint_names, c.plain.bodies, strict=True),
                 *((p.name, p) for p in c.plain.loops)]  # fmt: skip
        rough = {name: replace(p.dynamics, friction=()) for name, p in parts if p.dynamics}
        tendons = [replace(t, friction=0.0) for t in c.plain.tendons]
        other.__dict__["plain"] = c.plain.replace(dynamics=rough, tendons=tendons)
        other.__dict__.pop("ref", None)
        if not any(isinstance(b.joint, kt.Prescribed) for b in c.model.bodies):
            other.model = other.plain
        return other

    def after(self, what):
        """``q``, and mean acceleration in the step by Heun's method and in the first instant."""
        if what not in self.found:
            self.found[what] = self._after(what)
        return self.found[what]

    def _after(self, what):
        import copy

        c, h = self.frictionless if what == "no friction" else self.case, self.h
        if c.singular and what != "prescribed":  # the joint without inertia is prescribed
            return c.q, 0 * c.qd, 0 * c.qd
        later = copy.copy(c)
        later.__dict__["plain"] = at_time(c, h)

        def qdd(case, r):
            state = copy.copy(case)
            state.__dict__["ref"], state.q, state.qd = r, r.q, r.qd
            tau, given = passive(state), None
            if what == "tau":
                tau = tau + c.tau
            elif what == "motor" and self.joint is not None:
                tau[self.column] += 2.0 * c.force
            elif what == "servo" and self.joint is not None:
                l, ld = 2 * r.q[c.plain.q_slice[self.joint]][0], 2 * r.qd[self.column]
                tau[self.column] += 2.0 * c.force * (1 - 0.5 * l - 0.3 * ld)
            elif what == "force" and self.last:
                _, p = r.T[self.last]
                moved = np.concatenate(
                    [self.force[:3] + np.cross(p, self.force[3:]), self.force[3:]]
                )
                tau = tau + r.forces([np.zeros(6)] * (self.last - 1) + [moved])
            elif what == "prescribed" and self.joint is not None:
                given = np.arange(r.nv) == self.column, np.full(r.nv, c.qdd[self.column])
            return r.accelerations(tau, given=given)

        first = qdd(c, c.ref)
        q = c.ref.moved(c.q, c.qd + h / 2 * first, h)
        then = Reference(later.plain, q, c.qd + h * first)
        return q, (first + qdd(later, then)) / 2, first

    @cached_property
    def start_energy(self):
        return self.energy(self.case.q, self.case.qd)

    def energy(self, q, qd):
        """Kinetic, of gravity, and of springs."""
        r = Reference(self.case.plain, q, qd)
        return r.kinetic() + r.potential_at(q) + passive_energy(r)


# --- cells ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One value of one option.

    Attributes:
        function: ``"simulate"`` or ``"rollout"``.
        option: the parameter.
        label: what an error may call the value, and the test does.
        options: function of a ``Bench``: what is passed.
        leads: what moves the mechanism in addition: see ``Bench._after``.
        first_order: whether accelerations of a step are off by as much as they change in it.
        also: function of bench, motion and what was passed: more that has to hold.
        model: which mechanism of a ``Bench``.
    """

    function: str
    option: str
    label: str
    options: Callable
    leads: str = ""
    first_order: bool = False
    also: Callable = lambda b, motion, given: True
    model: str = "model"


def cells():
    """All cells, from the parameters of the functions and what is registered."""
    return [*_of_both("simulate"), *_of_both("rollout"), *_of_simulate(), *_of_rollout()]


def _of_both(function):
    for name, method in INTEGRATORS.items():
        low = method.order == 1
        yield Cell(function, "integrator", name, lambda b, n=name: {"integrator": n},
                   first_order=low)  # fmt: skip
    yield Cell(function, "integrator", "auto", lambda b: {"integrator": "auto"})
    yield Cell(function, "forces", "kernel", lambda b: {"forces": _steady(b)}, "tau")
    yield Cell(function, "forces", "ExternalForce", _pushed, "force")
    yield Cell(function, "friction", "smooth", lambda b: {"friction": "smooth"})
    yield Cell(function, "friction", "Friction",
               lambda b: {"friction": kt.Friction(width=1e-3)})  # fmt: skip
    yield Cell(function, "friction", "None", lambda b: {"friction": None}, "no friction")
    yield Cell(function, "limits", "stiff", lambda b: {"limits": "stiff"})
    yield Cell(function, "limits", "StiffLimits", lambda b: {"limits": kt.StiffLimits()})
    yield Cell(function, "limits", "None", lambda b: {"limits": None})
    yield Cell(function, "store_every", "2", lambda b: {"store_every": 2},
               also=lambda b, motion, given: len(motion.t) == 2)  # fmt: skip
    yield Cell(function, "t0", "5 s", lambda b: {"t0": 5.0},
               also=lambda b, motion, given: motion.t[0] == 5.0)  # fmt: skip
    yield Cell(function, "prescribed", "kernel", _prescribed, "prescribed")
    yield Cell(function, "motors", "TorqueSpeed", _motorized, "motor")
    yield Cell(function, "controls", "servo", _served, "servo", model="driven")
    yield Cell(function, "contact", "None", lambda b: {"contact": None})
    for kind in attach.registry:
        if kind not in (object, type(None)):
            yield Cell(
                function, "contact", kind.__name__,
                # in flight, by the integrator: exact friction is a row of the step, of first order
                lambda b, kind=kind: {"contact": CONTACTS[kind](b.scene), **_SMOOTH},
                # no integrator takes its steps in flight, and springs have the force of the end
                first_order=function == "rollout" and kind is TimeStepping,
            )  # fmt: skip


def _of_simulate():
    def simulated(*args, **more):
        return Cell("simulate", *args, **more)

    for name in CONSTRAINTS:
        yield simulated("constraints", name, lambda b, n=name: {"constraints": n})
    yield simulated("constraints", "partition", lambda b: {"constraints": kt.Charts("partition")})
    law = lambda b: lambda t, q, qd: b.case.tau  # noqa: E731
    yield simulated("controller", "function", lambda b: {"controller": law(b)}, "tau")
    yield simulated("controller", "Sampled",
                    lambda b: {"controller": kt.Sampled(law(b), 1 / b.h)}, "tau")  # fmt: skip
    yield simulated("controller", "Recorded",
                    lambda b: {"controller": kt.Recorded([0.0, 1.0], [b.case.tau] * 2)},
                    "tau")  # fmt: skip
    yield simulated("controls", "numbers", _controlled, "motor")
    yield simulated("forces", "function",
                    lambda b: {"forces": lambda m, t, q, qd: b.case.tau}, "tau")  # fmt: skip
    yield simulated("friction", "exact", lambda b: {"friction": "exact"})
    yield simulated("limits", "rigid", lambda b: {"limits": "rigid"})
    yield simulated(
        "events", "Event", lambda b: {"events": [kt.Event(lambda t, q, qd: t - b.h / 2)]},
        also=lambda b, motion, given: abs(motion.events[0].t - b.h / 2) < 1e-12,
    )  # fmt: skip
    yield simulated(
        "hooks", "function", _hooked,
        also=lambda b, motion, given: abs(sum(given["hooks"][0].seen) - b.h) < 1e-15,
    )  # fmt: skip
    for name in TOLERANCES:
        tight = {"rtol": 1e-9, "atol": 1e-12}
        yield simulated(name, "adaptive", lambda b, n=name, tight=tight: (
            {n: tight[n]} if n in tight else {**tight, n: b.h / 3}))  # fmt: skip
    yield simulated("prescribed", "function", lambda b: _prescribed(b, kernel=False), "prescribed")
    yield simulated("progress", "function", _watched,
                    also=lambda b, motion, given: len(given["progress"].seen) > 0)  # fmt: skip


def _of_rollout():
    def rolled(*args, **more):
        return Cell("rollout", *args, **more)

    @kt.kernel
    def pushed(m, q, u):
        return u

    yield rolled("controller", "kernel", lambda b: {"controller": _law(b)}, "tau")
    for name, timed in (("inputs", True), ("arguments", False)):
        yield rolled(
            name, "array",
            lambda b, n=name, timed=timed: {
                "controller": pushed, n: {"u": b.case.tau[None] if timed else b.case.tau}
            }, "tau",
        )  # fmt: skip
    yield rolled("parameters", "mass", _same_mass)
    yield rolled("out", "Rollout", lambda b: {"out": None})


def _steady(b):
    tau = b.case.tau

    @kt.kernel
    def steady(m, t, q, qd):
        return tau + 0 * qd

    return steady


def _law(b):
    tau = b.case.tau

    @kt.kernel
    def law(m, qd):
        return tau + 0 * qd

    return law


def _pushed(b):
    if not b.last:
        return {"forces": ()}
    return {"forces": [kt.ExternalForce(b.case.plain.body_names[b.last], b.force)]}


def _prescribed(b, kernel=True):
    if b.joint is None:
        return {"prescribed": {}}
    c = b.case
    q, v = c.q[c.plain.q_slice[b.joint]], c.qd[b.column]
    a = c.qdd[b.column]

    def motion(t):
        return q + t * (v + t * a / 2), np.array([v + t * a]), np.array([a + 0 * t])

    return {
        "prescribed": {c.plain.joint_names[b.joint - 1]: kt.kernel(motion) if kernel else motion}
    }


def _controlled(b):
    if b.joint is None:
        return {}
    return {"controls": lambda t, q, qd: np.array([b.case.force])}


def _served(b):
    return {} if b.joint is None else {"controls": np.array([b.case.force])}


def _motorized(b):
    if b.joint is None:
        return {"motors": {}}
    return {**_served(b), "motors": {"motor": kt.TorqueSpeed(1e6 * b.case.force, 1e9)}}


def _hooked(b):
    def hook(step):
        hook.seen.append(step.t1 - step.t0)

    hook.seen = []
    return {"hooks": [hook]}


def _watched(b):
    def progress(t):
        progress.seen.append(t)

    progress.seen = []
    return {"progress": progress}


def _same_mass(b):
    if not b.last:
        return {"parameters": {}}
    body = b.case.plain.body_names[b.last]
    return {"parameters": {f"mass:{body}": b.case.plain.bodies[-1].inertia.mass}}


# --- the walk ------------------------------------------------------------------------------------


def missing():
    """Parameters and kinds of contact that no cell is about."""
    found = []
    for name, start in START.items():
        passed = (cell.option for cell in cells() if cell.function == name)
        known = {*start, *passed}
        found += [f"{name}({p}=)" for p in inspect.signature(getattr(kt, name)).parameters
                  if p not in known]  # fmt: skip
        found += [f"{name}({p}=), which is gone" for p in known
                  if p not in inspect.signature(getattr(kt, name)).parameters]  # fmt: skip
    kinds = [k for k in attach.registry if k not in (object, type(None)) and k not in CONTACTS]
    return [*found, *(f"contact={kind.__name__}" for kind in kinds)]


def outcome(cell: Cell, b: Bench) -> Outcome:
    """Simulate a step; AssertionError unless it is right, or refused.

    What the table of ``kinetree.simulation.compatibility`` has must be refused in its words;
    other refusals must name the function and what the mechanism has.
    """
    name = f"{cell.function}({cell.option}={cell.label})"
    f = Checked(name, getattr(kt, cell.function), b.case)
    with warnings.catch_warnings(), as_texts(b.choices):
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        expected = ""
        try:
            given = _with_integrator(cell, cell.options(b))
            expected = _conflict(cell, b, given)
            _require_right(f, cell, b, _moved(cell, b, given), given)
        except KinetreeError as error:
            return _refusal(cell, name, b.case, error, expected)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(
                f"{name} of {b.case.feature}: {type(error).__name__} of another library: {error}"
            ) from error
    assert not expected, f"{name} of {b.case.feature}: expected to be rejected: {expected}"
    return Outcome()


def _refusal(cell, name, case, error, expected):
    """The outcome, if the error is that of the table, or names the option and the mechanism."""
    if expected:
        assert str(error) == expected, f"{name}: expected {expected}, got {error}"
    else:
        called = (cell.function, cell.option, cell.label, "the simulation of")
        require_named(name, case, error, called)
    return Outcome(type(error).__name__, str(error))


def _conflict(cell, b, given):
    """What the table says about a cell: the message of the first conflict, or nothing."""
    known = {n: x for n, x in given.items() if n in OPTIONS}
    adaptive = any(n in given for n in ("rtol", "atol"))
    setup = compose_setup(cell.function, getattr(b, cell.model), adaptive=adaptive, **known)
    return next((message for _, message in conflicts(setup)), "")


def _with_integrator(cell, given):
    if cell.option in ("integrator", *TOLERANCES):
        return given
    return {"integrator": "midpoint", **given}  # few stages


def _moved(cell, b, given):
    c, steps, model = b.case, _parts(cell, b), getattr(b, cell.model)
    if cell.function == "simulate":
        return kt.simulate(model, c.q, c.qd, duration=b.h, dt=b.h / steps, **given)
    if cell.option == "out":
        given = {
            **given,
            "out": kt.rollout(model, c.q, c.ref.moving, steps=steps, dt=b.h / steps),
        }
    return kt.rollout(model, c.q, c.qd, steps=steps, dt=b.h / steps, **given)


def _parts(cell, b):
    """Steps in the short time."""
    if cell.label == "TimeStepping" and b.model.is_constrained:
        return COARSE
    return 2 if cell.option == "store_every" else 1


def _require_right(f, cell, b, motion, given):
    c, (q, mean, first) = b.case, b.after(cell.leads)
    ends = [np.asarray(x)[-1] for x in (motion.q, motion.qd)]
    allowed = 1e-5 * max_of(mean, c.qd) + cell.first_order * 2 * max_of(mean - first)
    if _parts(cell, b) == COARSE:  # of the first order in velocities, not in accelerations
        allowed = max_of(mean) / COARSE
    f.same((ends[1] - c.qd) / b.h, mean, scale=1.0, tolerance=allowed)
    f.same(ends[0], q, scale=max_of(q, 1.0), tolerance=1e-7)
    f.holds(cell.also(b, motion, given), "what the option requires")
    if cell.function == "simulate":
        energies = b.start_energy, b.energy(*ends)
        f.same(
            np.asarray(motion.energy)[[0, -1]], energies, scale=max_of(c.ref.kinetic(), energies)
        )
        f.holds(np.max(motion.loop_error, initial=0.0) < 1e-8, "loops stay closed")


@contextmanager
def as_texts(choices):
    """Run kernels of models, and rollouts, as they are written.

    ``choices`` keeps which constraints of the one mechanism are independent: it takes a while.
    """
    compiled, rolled = kernels._compile, transition.Transition._compile
    choose, within = options.choose, []

    def text(user, call, *, timed=False):
        native = user.__name__ in ("_joint_forces", "_resistance", "_flight") or any(within)
        if timed or call.model is None or native or not user.function.__module__.startswith(STEPS):
            within.append(native)  # the engine calls machine code, all of it
            try:
                return compiled(user, call, timed=timed)
            finally:
                within.pop()

        def results(*arrays):
            arrays = [np.asarray(a) for a in arrays]
            found, _ = flatten(user._reference(call.with_arrays(arrays)), user.__name__)
            found = tuple(np.asarray(x, dtype=float) for x in found)  # texts have whole numbers too
            return found[0] if len(found) == 1 else found

        def whole(*arrays):
            return user._reference(call.with_arrays([np.asarray(a) for a in arrays]))

        whole.kernel = SimpleNamespace(call=results)
        return whole

    def text_of_steps(self, name, inputs, function):
        def full(*arrays):
            values = [np.asarray(a)[0] if np.ndim(a) > len(i.shape) else np.asarray(a)
                      for a, i in zip(arrays, inputs, strict=True)]  # fmt: skip
            return function(*(a if a.shape else a[()] for a in values))

        count = iter(range(1 << 30))  # every look at the status differs: steps run carefully

        class Status:
            value = property(lambda self: next(count))

        def in_place(*arrays, out):
            for place, result in zip(out, full(*arrays), strict=True):
                place[...] = result

        variant = SimpleNamespace(status=Status(), ufunc=lambda *args, out: (0.0,) * len(out))
        if self.contact is not None:  # what fails is marked, and not taken again
            variant = SimpleNamespace(status=SimpleNamespace(value=0), ufunc=in_place)
        return SimpleNamespace(
            inputs=inputs, full=full, is_empty=not self.model.nv, numbers=1, tier="text",
            variant=lambda dtype, wide, samples: variant,
        )  # fmt: skip

    def chosen_once(model, q, prescribed=()):
        key = q.tobytes(), tuple(prescribed)
        if key not in choices:
            choices[key] = choose(model, q, prescribed)
        return choices[key]

    kernels._compile, transition.Transition._compile = text, text_of_steps
    options.choose = chosen_once
    try:
        yield
    finally:
        kernels._compile, transition.Transition._compile = compiled, rolled
        options.choose = choose
