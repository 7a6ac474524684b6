"""Rows of the table of what cannot be combined, for what is found out where it arises.

``simulation.compatibility`` has the rows that follow from the options of a call. What depends on a
scene, on shapes or on a kind of array is found deeper down; whoever finds it raises the error of a
row here, so that all refusals have a reason and a remedy, and are on one page.
"""

from dataclasses import dataclass

from kinetree.errors import (
    ArrayKindError,
    JointError,
    KinetreeError,
    ModelError,
    SimulationError,
    TraceError,
)


@dataclass(frozen=True)
class Refusal:
    """Two things that cannot be combined."""

    first: str
    """The one that cannot do it, in the documentation."""
    second: str
    """What it cannot do."""
    reason: str
    """Why, in Markdown."""
    instead: str
    """What to do instead."""
    error: type[KinetreeError] = ModelError
    """Class of the error."""

    def of(self, first: str, second: str) -> KinetreeError:
        """Error that two features, described in words, cannot be combined."""
        text = f"{first} cannot be combined with {second}: {self.reason}; {self.instead}"
        return self.error(text.replace("`", ""))


_CURVE = "torque–speed curves, `motors=`"
_OTHERS = "arrays of other libraries"

NATIVE_CONTROL = Refusal(
    "`WholeBody` and controllers of parts in `rollout`",
    "motions without rigid contact, derivatives, `contact_friction`, GPUs",
    "they are called between steps, by the loop of steps with rigid contact alone",
    "use `kinetree.simulate`, or write a controller as a kernel",
)
OPEN_PAIRS = Refusal(
    "`SoftContact`, `scene.candidate_terms` and the like",
    "pairs of shapes without closed form",
    "compiled code cannot find where they touch",
    "leave them out: `scene.closed_forms()`, `Scene(model, pairs='base')` or a list of pairs; or "
    "use `scene.contacts(q)`",
)
MOVING_SURFACES = Refusal(
    "`SoftContact`, `EventDriven`",
    "surfaces that move, `Surface.velocity`",
    "their laws of friction are for surfaces that rest on their shapes",
    "use `kinetree.contact.TimeStepping` or `kinetree.World`, or move the body itself with "
    "`prescribed=`",
)
ADHESION = Refusal(
    "`SoftContact`, `EventDriven`",
    "actuators that adhere",
    "only steps of rigid contact share their force among contacts",
    "use `kinetree.contact.TimeStepping` or `kinetree.World`, or leave them out: "
    "`model.replace(actuators=...)`",
)
EVENT_SHAPES = Refusal(
    "`EventDriven`",
    "other shapes than those with closed forms, polyhedra (`Box`, `Mesh` by its convex hull, "
    "`Plane`) and a `Cylinder` on one of them",
    "only of these is it known which features touch until the next event",
    "leave the pair out, `scene.closed_forms()`, or use `kinetree.contact.TimeStepping`",
)
UNROLLED = Refusal(
    "steps that are unrolled for a scene: derivatives, `relaxation`, and "
    "`contact_friction` of rollouts",
    "scenes with moving surfaces, rolling friction, adhesion, pairs without closed form, or more "
    "than `TimeStepping.compiled_rows` rows",
    "every contact is part of the compiled code",
    "leave out pairs that need not touch, `Scene(model, pairs='feet')` or `pairs='base'`, in a "
    "world `world.exclude(a, b)`, or use simple shapes such as spheres on planes. Without "
    "derivatives and relaxation, `kinetree.simulate` and `world.batch(n)` take any scene",
)
HELD_PAIRS = Refusal(
    "`contact=TimeStepping(...)`",
    "pairs of shapes that only prescribed joints could keep apart",
    "no force changes their motion",
    "leave the pairs out of the scene, with `ignore=`",
)
SLOTS = Refusal(
    "rollouts on a GPU with more potential contacts than can be unrolled",
    "pairs without a closed form among which are height fields, meshes that are not convex, or "
    "planes that move; more than 192 variables of bodies that may touch each other; moving "
    "surfaces, rolling friction, loops, couplings, tendons, rigid stops, exact joint friction, "
    "prescribed joints, relaxed laws",
    "steps with slots for the contacts that are close have no rows for these",
    "give NumPy arrays, whose engine takes any scene, or fewer pairs, `Scene(model, pairs)`",
)
SLOT_DERIVATIVES = Refusal(
    "derivatives on a GPU",
    "more potential contacts than can be unrolled",
    "steps with slots for the contacts that are close have none",
    "use a scene that can be unrolled, `Scene(model, pairs='feet')`",
)
VARYING_RATIO = Refusal(
    "`friction='exact'`",
    "friction in joints that follow others by a ratio that varies",
    "a row of dry friction is for one variable",
    "use `friction='smooth'`",
)
STOPS_OF_LOOPS = Refusal(
    "limits of joints that close loops",
    "joints whose velocities are not the rates of their variables",
    "no stop can be put there",
    "leave the limits out, or pass `limits=None`",
)
BAKED_PARAMETERS = Refusal(
    "`parameters=` of rollouts with rigid contact, but for masses and inertias",
    "loops, couplings, tendons, gravity compensation, fluids, joints of your own",
    "they are part of the code of its loops, couplings, tendons, gravity compensation, fluids or "
    "joints of your own",
    "take one model at a time with `kinetree.simulate`",
)
BATCH_MASSES = Refusal(
    "`world.batch(mass=, size=)`",
    "gravity compensation, fluids, joint classes without `parameters()`",
    "masses and sizes would have to be compiled for each world",
    "make a world of each: `world.with_model(...)`",
)
BATCH_SIZES = Refusal(
    "`world.batch(size=)`",
    "shapes that are not solids with sizes, such as meshes and planes",
    "the size of a batch is for solids with sizes",
    "make a world of each: `world.with_model(...)`",
)
DEVICE_FORCES = Refusal(
    '`world.batch(device="cuda")`',
    "forces that are functions of time or state",
    "all steps of a call are one launch",
    "give wrenches by name for each call, `worlds.step(forces={...})`, or step worlds on the CPU",
)
DEVICE_CALLS = Refusal(
    '`world.batch(device="cuda")`',
    "forces of your own in compiled code that calls other compiled code",
    "their code is tied to the memory of this processor",
    "step worlds on the CPU, `world.batch(n)`",
)
OWN_NUMBERS = Refusal(
    "`simulate`",
    "worlds of a batch with their own numbers",
    "simulate takes one world",
    "use `kinetree.rollout(worlds, steps=...)`, `worlds.step()`, or `worlds[k]`",
)
OWN_RELAXED = Refusal(
    "`contact=TimeStepping(relaxation=...)`",
    "worlds with their own masses, sizes or friction",
    "they are stepped without relaxation",
    "leave out `relaxation`, or give these numbers by `parameters=` of a rollout of one model",
)
FOLLOWED_ACTIVATIONS = Refusal(
    "`controls=` of a kernel in rollouts",
    "actuators with activations",
    "activations follow from controls that are known beforehand",
    "give `controls=` as arrays, or use `kinetree.simulate`, which takes any function",
    TraceError,
)
INTEGRALS = Refusal(
    "`rollout`, its derivatives and `learning.Environment`",
    "actuators with integral action",
    "integrals of lengths are states of the motion, and there states of actuators follow from "
    "controls alone",
    "use `kinetree.simulate` or `World`, or leave integral action to the controller",
)
OTHERS_PRESCRIBED = Refusal(
    f"{_OTHERS} with derivatives",
    "`prescribed=`",
    "prescribed joints are computed on the CPU and have no derivatives there",
    "detach them, or use `kinetree.rollout_gradient`",
    ArrayKindError,
)
OTHERS_OWN = Refusal(
    f"{_OTHERS} on a GPU, or with derivatives",
    "worlds of a batch with their own numbers",
    "these are stepped on the CPU",
    "give NumPy arrays, or those of the CPU",
    ArrayKindError,
)
OTHERS_ACTIVATIONS = Refusal(
    f"{_OTHERS} on a GPU, or with derivatives",
    "activations of actuators",
    "they are computed on the CPU, and have no derivatives there",
    "give NumPy arrays, or use `kinetree.rollout_gradient`",
    ArrayKindError,
)
OTHERS_TRANSFORMED = Refusal(
    "`jit` and `vmap`",
    "loops",
    "a rollout looks at the numbers where it starts, and inside a transformation there are none",
    "call it outside of them",
    ArrayKindError,
)
OTHERS_MEMORY = Refusal(
    _OTHERS,
    "soft contact with `law='patch'` or `Stiction`",
    "rollouts take soft contact with a memory with NumPy arrays only",
    "use `law='hunt_crossley'` or `'linear'` with `Regularized` friction, which need no memory",
    TraceError,
)
RECORDED_RATES = Refusal(
    "`RecordedMotion`",
    "joints whose velocities are not the rates of their variables",
    "it takes rates of the recorded positions for velocities",
    "give a function of time that returns its `(q, qd, qdd)`",
    JointError,
)
EVENT_PRESCRIBED = Refusal(
    "events that change the state of a joint",
    "`prescribed=` of this joint",
    "its motion is given",
    "leave it where it is",
    SimulationError,
)
CURVES_IN_TREE = Refusal(
    _CURVE,
    "actuators of tendons, frames and joints that close loops",
    "a torque-speed curve is for an actuator of a joint in the tree",
    "limit the force in a controller",
)
CURVES_OF_LEADERS = Refusal(
    _CURVE,
    "joints that follow others by a ratio that varies",
    "a torque-speed curve is for a joint that leads, or that follows one other by a constant ratio",
    "limit the force in a controller",
)
CURVES_ALONE = Refusal(
    _CURVE,
    "joints with several variables or actuators",
    "a torque-speed curve is for an actuator that drives one variable, alone and with a gear that "
    "is not zero",
    "limit the force in a controller",
)

REFUSALS = tuple(x for x in vars().copy().values() if isinstance(x, Refusal))
"""All rows, as they stand here."""
