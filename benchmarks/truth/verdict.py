"""Verdicts: what is wrong in the steps of a scene, and whether the world reported it."""

import time
from dataclasses import asdict, dataclass, field

import mujoco
import numpy as np

from truth.judge import Judge, Step
from truth.scene import Scene, start_velocities

FIGURES = ("overlap", "velocity", "momentum", "cone", "gain")
SHOWN = ("momentum",)  # changes at shifts of positions out of an overlap, and where energy is taken
NAMED = {  # words of a warning that is about a figure
    "overlap": ("inside", "overlap", "penetrat"),
    "velocity": ("solved", "velocity", "error", "residual"),
    "cone": ("solved", "cone", "friction", "error", "residual"),
    "gain": ("energy", "solved"),
}


@dataclass
class Limits:
    """Errors above which an answer is wrong: [m], [m/s], [N s], [J]."""

    overlap: float = 1e-5
    velocity: float = 1e-4
    cone: float = 1e-4
    gain: float = 1e-6


@dataclass
class Result:
    """A scene and its worst figures.

    Attributes:
        name: of the scene.
        overlap, velocity, momentum, cone, gain: see ``judge``.
        wrong: names of figures beyond their limits, with the step, the value and the reported one.
        silent: those of them that neither the report of the step nor a warning shows.
        warned: first warnings.
        figure: what this scene is about, in words.
        fine: whether ``figure`` is as it should be, if that can be said.
        numbers: further numbers.
    """

    name: str
    overlap: float = 0.0
    velocity: float = 0.0
    momentum: float = 0.0
    cone: float = 0.0
    gain: float = 0.0
    wrong: list = field(default_factory=list)
    silent: list = field(default_factory=list)
    warned: list = field(default_factory=list)
    figure: str = ""
    fine: bool | None = None
    numbers: dict = field(default_factory=dict)

    def add(self, judge: Judge, steps: list[Step], limits: Limits, label: str = "") -> "Result":
        """Count the steps of a world in."""
        before = [*judge.warned]
        for name in FIGURES:
            values = np.array([getattr(s, name) for s in steps] or [0.0])
            setattr(self, name, max(getattr(self, name), float(values.max())))
        for name in (x for x in FIGURES if x not in SHOWN):
            limit = getattr(limits, name)
            bad = [k for k, s in enumerate(steps) if not getattr(s, name) <= limit]
            if not bad:
                continue
            k = max(bad, key=lambda k: getattr(steps[k], name))
            true, reported = getattr(steps[k], name), steps[k].said.get(name, 0.0)
            entry = [label, name, k, len(bad), float(true), float(reported)]
            self.wrong.append(entry)
            quiet = [k for k in bad if steps[k].said.get(name, 0.0) < getattr(steps[k], name) / 2]
            warned = [w for s in steps[: max(bad) + 1] for w in s.warned] + before
            named = any(word in w for w in warned for word in NAMED[name])
            if quiet and not named:
                k = max(quiet, key=lambda k: getattr(steps[k], name))
                self.silent.append([*entry[:2], k, len(quiet), float(getattr(steps[k], name)),
                                    float(steps[k].said.get(name, 0.0))])  # fmt: skip
        self.warned += [f"{label} {w}".strip() for w in before][:2]
        self.warned += [f"{label} step {k}: {w}" for k, s in enumerate(steps) for w in s.warned][:2]
        return self

    def include(self, other: "Result") -> None:
        """Count another result in, with its numbers under its name."""
        for name in FIGURES:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.wrong += other.wrong
        self.silent += other.silent
        self.warned += other.warned
        self.numbers[other.name] = other.numbers

    def row(self) -> str:
        """Row of a table."""
        cells = [self.name, *(f"{getattr(self, x):.1e}" for x in HEAD[1:6])]
        verdict = "silent: " + ", ".join(sorted({x[1] for x in self.silent})) if self.silent else (
            "reported" if self.wrong else "right"
        )  # fmt: skip
        fine = {None: "", True: "✓ ", False: "✗ "}[self.fine]
        return "| " + " | ".join([*cells, verdict, fine + self.figure]) + " |"

    def as_dict(self) -> dict:
        """For JSON."""
        return asdict(self)


HEAD = ("scene", "overlap", "velocity", "momentum", "cone", "gain", "verdict", "figure")
UNITS = ("", " [m]", " [m/s]", " [m/s]", " [N s]", " [J]", "", "")


def judged(name, scene: Scene, limits: Limits | None = None, every: int = 1) -> Result:
    """Result of all steps of a scene."""
    judge = Judge(scene, every=every)
    return Result(name).add(judge, judge.run(), limits or limits_of(scene))


def limits_of(scene: Scene) -> Limits:
    """Limits by sizes, masses and speeds of a scene.

    A hundred thousandth of a decimetre is 1e-5 of the size of a body of 10 cm that would be pushed
    aside; energies count relative to the heaviest body falling by its own size.
    """
    moving = [t for t in scene.things if t.mass]
    from truth.solids import Solid

    size = [Solid(t.shape).radius for t in moving]
    heavy = max(t.mass for t in moving)
    g = scene.gravity or 9.81
    energy = max(t.mass * g * r for t, r in zip(moving, size, strict=True))
    return Limits(
        overlap=1e-4 * min(0.1, *size, 0.1), velocity=1e-4,
        cone=1e-4 * heavy * g * scene.timestep, gain=1e-5 * energy,
    )  # fmt: skip


# --- times ---------------------------------------------------------------------------------------


@dataclass
class Times:
    """Mean of the last steps [s], ours and MuJoCo's; our first step, the build, our slowest."""

    ours: float
    theirs: float
    first: float
    built: float
    worst: float

    @property
    def ratio(self) -> float:
        """Ours over MuJoCo's."""
        return self.ours / self.theirs


def timed(world, mj, steps, last, tau=None, data=None) -> Times:
    """Times of steps of a world and of a MuJoCo model, in turns."""
    data = mujoco.MjData(mj) if data is None else data
    ours, theirs = np.zeros((2, steps))
    for k in range(steps):
        start = time.thread_time()
        world.step(1, tau=tau) if tau is not None else world.step(1)
        ours[k] = time.thread_time() - start
        start = time.thread_time()
        mujoco.mj_step(mj, data)
        theirs[k] = time.thread_time() - start
    return Times(ours[-last:].mean(), theirs[-last:].mean(), ours[0], 0.0, ours[1:].max())


def timed_scene(scene: Scene, last: int) -> Times:
    """Times of a scene, as of a mechanism."""
    start = time.thread_time()
    world = scene.world()
    world.model  # noqa: B018  (assembled here)
    built = time.thread_time() - start
    mj = mujoco.MjModel.from_xml_string(scene.mjcf())
    data = mujoco.MjData(mj)
    start_velocities(scene, mj, data)
    found = timed(world, mj, scene.steps, last, scene.forces(world), data)
    found.built = built
    return found
