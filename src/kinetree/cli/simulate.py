"""``kinetree simulate``: the motion of a robot from a state, with a simple controller or none."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from kinetree.cli import options as cli
from kinetree.cli.arguments import configuration, numbers, vector
from kinetree.cli.options import Json, RobotArgument, option
from kinetree.cli.records import Reading, with_records
from kinetree.cli.view import PICTURES, draw, missing, require_place
from kinetree.spelling import did_you_mean, printable


def _complete_integrator(incomplete: str):
    """Integrator names that begin with a text, for shell completion."""
    from kinetree.simulation import INTEGRATORS

    return [name for name in ("auto", *INTEGRATORS) if name.startswith(incomplete)]


def _complete_controller(incomplete: str):
    """Controller names that begin with a text, for shell completion."""
    return [name for name in NAMES if name.startswith(incomplete)]


Duration = Annotated[
    float, option("--duration", "-d", value="S", help="How long, in seconds; 5 unless given.")
]
StepLength = Annotated[
    float, option("--dt", value="S", help="Length of a step; 0.001 unless given.")
]
StartPosition = Annotated[
    str | None,
    option("--q", value="Q", help="Start: 1,2,3 or neutral or random:7 or a posture."),
]
StartVelocity = Annotated[
    str | None, option("--qd", value="QD", help="Velocities at the start; zero unless given.")
]
IntegratorName = Annotated[
    str,
    option(
        "--integrator",
        value="NAME",
        help="Such as rk4, semi_implicit_euler; by default what suits.",
        autocompletion=_complete_integrator,
    ),
]
RelativeTolerance = Annotated[
    float | None,
    option("--rtol", value="R", help="Let steps adapt to keep this relative error."),
]
ControllerName = Annotated[
    str,
    option(
        "--controller",
        value="NAME",
        help="none; gravity: carry the weight; pd: and pull to --goal.",
        autocompletion=_complete_controller,
    ),
]
Goal = Annotated[
    str | None, option("--goal", value="Q", help="Where pd pulls to; the start unless given.")
]
Controls = Annotated[
    str | None,
    option("--controls", value="U", help="Of the actuators: 1,2,3 or those of a posture."),
]
GroundHeight = Annotated[
    float | None,
    option("--ground", value="Z", help="Put a ground at this height, in metres, to fall to."),
]
StoreEvery = Annotated[
    int | None,
    option("--every", value="N", help="Keep every n-th step; by default about 1000 steps."),
]
MotionFile = Annotated[
    Path | None,
    option("--out", "-o", value="FILE", help="Keep the motion: .npz, .parquet or .nc."),
]
PlotFile = Annotated[
    Path | None, option("--plot", value="FILE", help="Draw it: .png, .pdf or .svg.")
]


@dataclass(frozen=True)
class SimulationCourse:
    """From which state, for how long, and by which steps."""

    duration: Duration = 5.0
    dt: StepLength = 1e-3
    q: StartPosition = None
    qd: StartVelocity = None
    integrator: IntegratorName = "auto"
    rtol: RelativeTolerance = None

    def steps(self) -> dict:
        """Step options of ``kt.simulate``."""
        names = ("duration", "dt", "rtol", "integrator")
        return {name: getattr(self, name) for name in names}

    def steps_between_stored(self) -> int:
        """Number of steps between stored ones, for about 1000 in all."""
        duration, dt = self.duration, self.dt
        return max(1, round(duration / dt / 1000)) if 0 < dt < duration < 1e12 else 1


@dataclass(frozen=True)
class Controlled:
    """Forces that drive the robot."""

    controlled_by: ControllerName = "none"
    goal: Goal = None
    controls: Controls = None

    def options(self, model, start) -> dict:
        """Controller or controls of a simulation, as options."""
        if self.goal is not None and self.controlled_by != "pd":
            cli.misuse("--goal is for --controller pd")
        target = start if self.goal is None else configuration(model, self.goal)
        law = controller(model, self.controlled_by, target)
        if self.controls is not None and law is not None:
            cli.misuse("--controls drives the actuators, in place of --controller")
        return {"controller": law, "controls": as_controls(model, self.controls)}


@dataclass(frozen=True)
class Output:
    """Selection of the steps that are kept, and the files of the motion and its picture."""

    store_every: StoreEvery = None
    file: MotionFile = None
    picture: PlotFile = None

    def require_writable(self) -> None:
        """Exit before the simulation if an output file could not be written."""
        from kinetree.simulation.results.storage import WRITTEN

        for path, suffixes in ((self.file, WRITTEN), (self.picture, PICTURES)):
            if path is not None:
                require_place(path, suffixes)
        if self.picture is not None and (reason := missing()) is not None:
            cli.fail(reason)

    def write(self, motion) -> list:
        """Write the requested files of a motion; their paths."""
        written = [motion.save(self.file)] if self.file else []
        return written + ([draw(motion, self.picture)] if self.picture else [])


@with_records
def simulate(
    robot: RobotArgument,
    *,
    course: SimulationCourse,
    drive: Controlled,
    ground: GroundHeight = None,
    output: Output,
    reading: Reading,
    as_json: Json = False,
):
    """Simulate a robot: how it moves from a state, under a simple controller or none.

    Says where the motion ends, and whether to trust it: how well energy and momentum balance.
    """
    import kinetree as kt

    output.require_writable()
    model = original = reading.robot(robot).model
    start, speed = configuration(model, course.q), vector(model, "qd", course.qd)
    driven_by = drive.options(model, start)
    contact = None
    if ground is not None:
        model, contact = put_on_ground(model, ground, start)
    every = output.store_every
    every = course.steps_between_stored() if every is None else every
    with cli.bar("simulating", course.duration) as reached:
        motion = kt.simulate(
            model,
            start,
            speed,
            **course.steps(),
            store_every=every,
            progress=reached,
            contact=contact,
            **driven_by,
        )
    _print_motion(robot, motion, output.write(motion), as_json, _errors(robot, reading, original))


def _errors(robot, reading, model):
    """Errors of the robot that ``doctor`` finds: no such robot can exist.

    A file is examined as it is, for a link with impossible inertia may be part of another.
    """
    from kinetree.doctor import check

    if cli.is_file(robot):
        options = {"srdf": reading.srdf, "folders": reading.folders}
        found = check(robot, floating_base=reading.floating or None, **options)
    else:
        found = check(model)
    return [finding for finding in found if finding.severity == "error"]


def _print_motion(robot, motion, written, as_json, errors):
    """Print where a motion ends and which files it is in, as text or JSON."""
    if as_json:
        errors = [finding.to_dict() for finding in errors]
        cli.print_json(_facts(robot, motion, written) | {"robot_errors": errors})
        return
    _show(motion, robot, errors)
    for path in written:
        cli.err().print(f"wrote {path}", soft_wrap=True)


def _facts(robot, motion, written):
    """Facts about a motion as plain data."""
    from kinetree.simulation.results.archives import plain

    report = asdict(motion.report)
    if motion.report.contact is not None:
        report["contact"] = motion.report.contact._asdict()
    return {
        "model": robot,
        "duration": float(motion.t[-1] - motion.t[0]),
        "start": {"q": motion.q[0].tolist(), "qd": motion.qd[0].tolist()},
        "end": {"q": motion.q[-1].tolist(), "qd": motion.qd[-1].tolist()},
        "energy": {"start": float(motion.energy[0]), "end": float(motion.energy[-1])},
        "events": [plain(event) for event in motion.events],
        "report": plain(report),
        "files": [str(path) for path in written],
    }


def _show(motion, robot, errors):
    """Print a summary of a motion: steps, first and last state, errors."""
    from rich.table import Table
    from rich.text import Text

    from kinetree.functional.layout import positions, velocities

    console, report, model = cli.out(), motion.report, motion.model
    title = f"{motion.t[-1] - motion.t[0]:g} s in {report.steps} steps of {report.integrator}"
    console.print(Text.assemble((printable(model.name), "bold"), "  ", title, "\n"))
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for heading in ("joint", "start", "end", "min", "max", "speed at the end"):
        table.add_column(heading, justify="left" if heading == "joint" else "right")
    speeds = {v.name: motion.qd[-1, k] for k, v in enumerate(velocities(model))}
    for k, variable in enumerate(positions(model)):
        values = motion.q[:, k]
        shown = (values[0], values[-1], np.min(values), np.max(values))
        cells = [f"{_clean(x):.4g}" for x in shown]
        speed = speeds.get(variable.name)
        last = "" if speed is None else f"{_clean(speed):.4g} {variable.unit}/s"
        table.add_row(Text(printable(variable.name), "cyan"), *cells, last)
    console.print(table)
    console.print(_report(motion, _verdict(motion.report, robot, errors)))


def _verdict(report, robot, errors):
    """Verdict on a motion's accuracy and the robot, as text."""
    if not errors:
        return "can be trusted" if report.trusted else "look at the warnings"
    first, more = errors[0], f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    computed = "computed well" if report.trusted else "look at the warnings"
    wrong = f"{first.part}: {first.message}{more}"
    return f"{computed}, but the robot is wrong ({wrong}): kinetree check {robot}"


def _clean(x):
    """Number with rounding errors around zero removed."""
    return 0.0 if abs(x) < 1e-12 else x


def _report(motion, verdict):
    """Table rows about the accuracy of a motion."""
    report = motion.report
    rows = [("energy error", f"{report.energy_error:.1e} of the energy exchanged")]
    if report.momentum_error is not None:
        rows.append(("momentum error", f"{report.momentum_error:.1e}"))
    if motion.model.is_constrained:
        rows.append(("loop error", f"{report.loop_error:.1e} m or rad"))
    if report.contact is not None:
        deep = report.contact.penetration if report.penetration is None else report.penetration
        rows.append(("penetration", f"{deep:.1e} m"))
        rows.append(("lost in contact", f"{report.contact.loss:.3g} J"))
    rows.append(("largest step", f"{report.largest_step:.3g} s"))
    rows.append(("largest advance", f"{report.largest_advance:.2g} rad or m in a step"))
    rows.append(("smallest pivot", f"{report.smallest_pivot:.2g}"))
    if report.rejected:
        rows.append(("rejected", f"{report.rejected} steps"))
    for event in motion.events[:20]:
        rows.append(("event", f"{event.t:.6g} s  {event.name}"))
    if len(motion.events) > 20:
        rows.append(("", f"and {len(motion.events) - 20} more"))
    rows.append(("result", verdict))
    return cli.labels_and_texts(rows)


# --- Controllers by name -------------------------------------------------------------------------

NAMES = ("none", "gravity", "pd")
BANDWIDTH = 10.0
"""Natural frequency of each joint under springs and dampers [rad/s]."""


def as_controls(model, text):
    """Actuator controls from a posture's name or numbers, or None."""
    if text is None or text in [p.name for p in model.postures]:
        return text
    found, names = np.atleast_1d(numbers(text, "controls")), [a.name for a in model.actuators]
    if found.shape != (len(names),):
        each = f"; one for each of {', '.join(names)}" if names else ""
        cli.misuse(f"controls needs {len(names)} numbers, got {found.size}{each}")
    return found


def controller(model, name, goal):
    """Controller function ``(t, q, qd)`` to joint forces by name, or None.

    Args:
        model: the mechanism.
        name: ``none``; ``gravity`` carries the weight; ``pd`` also pulls to ``goal``. Both within
            the effort limits of the joints.
        goal: positions (nq,).
    """
    import kinetree as kt

    if name not in NAMES:
        hint = did_you_mean(name, NAMES, f"there are {', '.join(NAMES)}")
        cli.misuse(f"no controller is called {name!r}; {hint}")
    if name == "none":
        return None
    driven = _driven_velocities(model)
    of = _asked_motors(model)
    law = kt.control.GravityCompensation(model, actuated=of)
    if name == "pd":
        inertia = np.diagonal(kt.mass_matrix(model.spanning_tree, goal))
        kp, kd = BANDWIDTH**2 * inertia, 2 * BANDWIDTH * inertia
        law = kt.control.PDWithFeedforward(model, goal, kp, kd, feedforward="gravity", actuated=of)
    most = np.where(model.effort_limits > 0, model.effort_limits, np.inf)  # as far as motors go
    return lambda t, q, qd: np.clip(driven * law(t, q, qd), -most, most)


def _asked_motors(model):
    """Names of joints with motors, and floating ones; None with loops."""
    from kinetree.control.motors import pushed_variables
    from kinetree.joints import Free

    if model.is_constrained:
        return None
    pushed = set(pushed_variables(model, None).tolist())
    return [
        body.joint_name
        for body, at in zip(model.bodies, model.v_slice[1:], strict=True)
        if isinstance(body.joint, Free) or pushed.intersection(range(at.start, at.stop))
    ]


def _driven_velocities(model):
    """Mask (nv,) of the velocities that motors drive; 0 for floating joints."""
    from kinetree.joints import Free

    driven = np.ones(model.nv)
    for i, body in enumerate(model.bodies, start=1):
        if isinstance(body.joint, Free):
            driven[model.v_slice[i]] = 0
    return driven


# --- ``--ground`` --------------------------------------------------------------------------------

_NAME = "the ground"
_DEEP = 1e-6  # how far a robot may start in the ground, which then pushes it out [m]


def put_on_ground(model, height, start):
    """Model with a ground plane at a height [m], in rigid contact.

    ``start`` is the configuration in which nothing may be in the ground yet.
    """
    import numpy as np

    import kinetree as kt

    solid = [g for g in model.geometry if g.collision and g.body]
    if not solid:
        cli.fail(
            f"{model.name} has nothing solid to touch the ground with: in URDF, <collision> "
            f"elements of links that move"
        )
    model = kt.contact.with_ground(model, point=(0.0, 0.0, height), name=_NAME)
    scene = kt.contact.Scene(model, pairs=[(model.geometry[-1], g) for g in solid])
    gaps = scene.contacts(start, margin=np.inf).gap
    lowest = float(np.min(gaps, initial=np.inf))
    if lowest < -_DEEP:
        cli.misuse(
            f"the robot starts {-lowest:.4g} m deep in the ground; "
            f"--ground {np.floor((height + lowest) * 1000) / 1000:g} is below it"
        )
    return model, kt.contact.TimeStepping(scene)
