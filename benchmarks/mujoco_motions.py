"""Half a second of robots beside MuJoCo: URDF and MJCF files of the folders that are given.

    python benchmarks/mujoco_motions.py FOLDER [FOLDER ...] [--servos] [--floating] [--random]
    python benchmarks/mujoco_motions.py FOLDER [FOLDER ...] --standing

Each robot starts at its first keyframe or posture, else at the zero of its joints, and moves under
gravity, springs, dampers and fluids, with ``--servos`` under the controls of the keyframe as well,
with ``--random`` under random ones, and a robot of a URDF file with ``--floating`` on a free joint,
tumbling. A robot without actuators gets a motor at every joint then. Contact, limits, dry friction
and equality constraints are left out on both sides: MuJoCo's are soft. Meshes that are missing are
left out, too.
``kt.simulate`` runs at its defaults and in steps of a quarter; where steps of 1 ms are too long for
it, in those of a quarter and a sixteenth. MuJoCo runs with its RK4 where that
is stable, else with its implicit integrator, of order one, whose results are extrapolated to steps
of zero length.

A robot agrees if both end in the same state up to the errors of the two, which are estimated from
results with other steps, or to 1e-6.

With ``--standing`` MJCF robots are in a ``World`` with all that holds and touches them, for 2 s
under the controls of the keyframe, or none, from joints within their limits, and a hundredth of a
radian away from equilibria that are not stable. Robots of URDF files whose SRDF file has a standing
posture stand in it on a floor, with a position servo at every joint, and fall from 2 cm above it;
MuJoCo's contact is as hard as it can be there, in steps of 0.5 ms. Elsewhere it is soft, and a
robot that falls does so in its own way: a robot agrees if its centre of mass ends at the same
height, to a twentieth of the height at the start, or of the way that it fell.

Verdicts are counted for each folder that is given. A file that another has already been, letter by
letter, is left out, and one that takes longer than ``LONGEST`` is "too long".
"""

import signal
import sys
import tempfile
import time
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from pathlib import Path

import mujoco
import numpy as np

import kinetree as kt
from kinetree.benchmark import at_full_speed
from kinetree.interop import mujoco as states
from kinetree.loaders.meshes import mesh_bounds

at_full_speed()

DURATION, DT = 0.5, 1e-3
LONGEST = 300  # seconds for a file, of both simulators
SAME = 1e-6
FREE = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT


def robots(folders):
    """Paths of URDF files, and of MJCF files that have bodies."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix == ".urdf" or (path.suffix == ".xml" and _is_mjcf(path)):
                yield path


def _is_mjcf(path):
    try:
        root = ET.parse(path).getroot()
    except ET.ParseError:
        return False
    return root.tag == "mujoco" and root.find("worldbody/body") is not None


def without_meshes(path):
    """The text of an MJCF file without meshes, height fields and pictures that are files."""
    root = ET.parse(path).getroot()
    files = {
        x.get("name") or Path(x.get("file")).stem for x in root.findall("asset/mesh[@file]")
    }  # fmt: skip
    classes = {
        x.get("class") for x in root.iter("default")
        if (geom := x.find("geom")) is not None and geom.get("mesh") in files
    }  # fmt: skip
    for parent in list(root.iter()):
        for child in list(parent):
            picture = parent.tag == "asset" and (child.get("file") or child.tag == "texture")
            mesh = (
                child.get("mesh") in files or child.get("class") in classes or child.get("hfield")
            )
            if picture or child.tag == "skin" or (child.tag == "geom" and mesh):
                parent.remove(child)
            for name in ("texture", "material"):
                child.attrib.pop(name, None)
    return ET.tostring(root, encoding="unicode")


def loaded(path, floating):
    """Our model and MuJoCo's, free of loops and couplings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.suffix == ".urdf":
            model = kt.load(path, floating_base=floating)
            open_ended = {body.joint_name: None for body in model.bodies}  # some limits are wrong
            model = bare(model.replace(limits=open_ended, geometry=()))
            return model, states.to_model(model)
        try:
            mj_model = mujoco.MjModel.from_xml_path(str(path))
        except ValueError:  # such as for meshes that are not here
            pass
        else:
            return bare(kt.load(path)), mj_model
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / path.name
            copy.write_text(without_meshes(path))
            return bare(kt.load(copy)), mujoco.MjModel.from_xml_path(str(copy))


def driven(model):
    """The model with a motor at every joint of one variable, and MuJoCo's of it."""
    motors = [
        kt.Actuator(f"motor of {b.joint_name}", joint=i)
        for i, b in enumerate(model.bodies, start=1)
        if b.joint.nv == 1
    ]
    model = model.replace(actuators=motors, postures=())
    return model, states.to_model(model)


def random_controls(model, q, mj_model, own):
    """Random controls: within their range, or such as to accelerate joints by up to 5 rad/s²."""
    rng = np.random.default_rng(1)
    if own:
        ranges = np.where(mj_model.actuator_ctrllimited[:, None], mj_model.actuator_ctrlrange, 1.0)
        return rng.uniform(np.where(mj_model.actuator_ctrllimited, ranges[:, 0], -1), ranges[:, 1])
    H = np.diagonal(kt.mass_matrix(model, q))
    at = [model.v_slice[a.joint].start for a in model.actuators]
    return rng.uniform(-5, 5, len(at)) * H[at]


def is_known(path):
    """Whether MuJoCo reads a file, meshes and all."""
    try:
        mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return False
    return True


def bare(model):
    """The model without loops and couplings."""
    return model.uncoupled.spanning_tree


def ours(model, q, qd, dt, controls):
    """The state at the end, and the report."""
    options = {} if controls is None else {"controls": controls}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        motion = kt.simulate(
            model, q, qd, duration=DURATION, dt=dt, store_every=10_000, limits=None, friction=None,
            **options,
        )  # fmt: skip
    return (motion.q[-1], motion.qd[-1]), motion.report


def theirs(mj_model, qpos, qvel, ctrl, integrator, dt):
    """Position and velocity at the end in MuJoCo's variables; None if it diverges."""
    mj_model.opt.integrator, mj_model.opt.timestep = integrator, dt
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    if ctrl is not None:
        data.ctrl[:] = ctrl
    mujoco.mj_step(mj_model, data, round(DURATION / dt))
    good = np.all(np.isfinite(data.qpos)) and abs(data.time - DURATION) < 1e-9
    bad = data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number
    return (data.qpos.copy(), data.qvel.copy()) if good and not bad else None


def gap(model, a, b):
    """The largest difference of two states: positions, and velocities times a tenth of a second."""
    dq, dv = model.difference(a[0], b[0]), b[1] - a[1]
    return float(max(np.max(np.abs(dq)), 0.1 * np.max(np.abs(dv))))


def reference(model, mj_model, start, ctrl, explicit):
    """MuJoCo's end state, the error that it may have, and the name of the integrator.

    ``explicit`` says whether ours is RK4, too, in steps of the same length.
    """
    kinds = mujoco.mjtIntegrator

    def state(end):
        return states.from_q(model, mj_model, end[0]), states.from_v(model, mj_model, *end)

    ends = [theirs(mj_model, *start, ctrl, kinds.mjINT_RK4, dt) for dt in (5e-4, 2.5e-4)]
    if all(end is not None for end in ends):
        a, b = map(state, ends)
        if explicit or gap(model, a, b) < 1e-4:  # with the same method the errors are the same
            return b, gap(model, a, b), "RK4"
    steps = (1e-4, 5e-5, 2.5e-5)
    ends = [theirs(mj_model, *start, ctrl, kinds.mjINT_IMPLICIT, dt) for dt in steps]
    if any(end is None for end in ends):
        return None, np.inf, "diverges"
    a, b, c = map(state, ends)
    first, better = (_extrapolated(model, *pair) for pair in ((a, b), (b, c)))
    return better, gap(model, first, better), "implicit"


def _extrapolated(model, a, b):
    """To steps of zero length, from one and half of it, of a method of order one."""
    return model.integrate(b[0], model.difference(a[0], b[0])), 2 * b[1] - a[1]


def compared(path, *, servos=False, floating=False, random=False):
    """A row of the table: verdict, and numbers behind it."""
    try:
        model, mj_model = loaded(path, floating)
    except Exception as error:  # whatever a file may be
        why = str(error).strip().split("\n")[-1][:90]
        return {"verdict": "not read" if is_known(path) else "MuJoCo does not read it", "why": why}
    if not model.nv:
        return {"verdict": "not compared", "why": "no freedom"}
    own = path.suffix == ".xml" and mj_model.nu > 0
    if random and not own:
        model, mj_model = driven(model)
        random = mj_model.nu > 0
    mj_model.opt.disableflags |= FREE
    if not (servos or random):
        mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    key = mj_model.nkey > 0
    qpos = mj_model.key_qpos[0] if key else mj_model.qpos0
    qvel = mj_model.key_qvel[0] if key else np.zeros(mj_model.nv)
    if floating:  # from rest everything would just fall
        qvel = np.random.default_rng(0).uniform(-1, 1, mj_model.nv)
    ctrl = mj_model.key_ctrl[0] if key and servos else None
    if servos and (ctrl is None or not ctrl.size):
        return {"verdict": "not compared", "why": "no controls in a keyframe"}
    if ctrl is not None and len(ctrl) != len(model.actuators):
        return {"verdict": "not compared", "why": "an actuator that the loader leaves out"}
    try:
        if random:
            start = states.from_q(model, mj_model, qpos)
            ctrl = random_controls(model, start, mj_model, own)
        q, qd = states.from_q(model, mj_model, qpos), states.from_v(model, mj_model, qpos, qvel)
    except Exception as error:
        return {"verdict": "not compared", "why": str(error)[:90]}
    begin = time.perf_counter()
    row = {"nv": model.nv}
    for dt in (DT, DT / 4):
        try:
            default, report = ours(model, q, qd, dt, ctrl)
        except Exception as error:
            why = str(error)[:200]
        else:
            break
    else:
        end = reference(model, mj_model, (qpos, qvel), ctrl, True)[0]
        return {**row, "verdict": "both diverge" if end is None else "stopped", "why": why}
    if dt < DT:
        row["dt"] = dt
    row |= {"integrator": report.integrator, "seconds": time.perf_counter() - begin}
    if not report.trusted:
        row["warning"] = report.warnings[0][:120]
    fine, _ = ours(model, q, qd, dt / 4, ctrl)
    end, theirs_error, name = reference(
        model, mj_model, (qpos, qvel), ctrl, report.integrator == "rk4"
    )
    if end is None:
        return {**row, "verdict": "not compared", "why": "MuJoCo diverges"}
    own, found = gap(model, default, fine), gap(model, fine, end)
    row |= {"ours": own, "theirs": theirs_error, "gap": found, "peer": name}
    if found > 1e-2 and own > 1e-2:
        return {**row, "verdict": "not compared", "why": "chaotic: steps of 1 ms are too long"}
    same = found <= max(SAME, own / 3 + 4 * theirs_error)  # of the first order at least
    return {**row, "verdict": "agrees" if same else "differs"}


STANDING = ("standing", "half_sitting", "reference", "standing_with_arm_up")
ROBOT, FLOOR = (
    kt.geometry.Surface(friction=0.8, contype=a, conaffinity=b) for a, b in ((1, 2), (2, 1))
)


def on_a_floor(path):
    """A robot of a URDF file on a floor, with servos, and its standing posture; None without."""
    for srdf in sorted((path.parents[1] / "srdf").glob("*.srdf")):
        try:
            model = bare(kt.load(path, floating_base=True, srdf=srdf))
        except kt.KinetreeError:
            continue
        posture = next((p for p in model.postures if p.name in STANDING), None)
        if posture is not None:
            break
    else:
        return None
    q = np.array(posture.q)
    shapes = [replace(g, surface=ROBOT) for g in model.geometry if g.collision]
    lowest = min((lowest_point(model, q, g) for g in shapes), default=0.0)
    q[2] += 0.02 - lowest
    stiffness = model.total_mass * 9.81 * (kt.center_of_mass(model, q)[2])
    servos = [
        kt.Actuator(f"servo of {b.joint_name}", joint=i, gain=stiffness,
                    bias=(0.0, -stiffness, -0.1 * stiffness))
        for i, b in enumerate(model.bodies, start=1)
        if b.joint.nq == b.joint.nv == 1
    ]  # fmt: skip
    floor = kt.geometry.Geometry(0, kt.geometry.Plane((0.0, 0.0)), surface=FLOOR)
    start = kt.Posture("start", q, controls=[q[model.q_slice[a.joint].start] for a in servos])
    return model.replace(geometry=(*shapes, floor), actuators=servos, postures=(start,))


def lowest_point(model, q, geometry):
    """Height of the lowest corner of the box around a shape."""
    pose = kt.poses(model, q)[geometry.body - 1] if geometry.body else np.eye(4)
    X, shape = geometry.placement, geometry.shape
    if isinstance(shape, kt.geometry.Mesh):
        low, high = mesh_bounds(shape.path, scale=shape.scale)
    else:
        high = np.array(shape.half_extents)
        low = -high
    down = pose[:3, :3] @ np.array(X.E, dtype=float).T  # from shape to world coordinates
    center = pose[:3, 3] + pose[:3, :3] @ X.r + down @ ((low + high) / 2)
    return center[2] - np.abs(down[2]) @ ((high - low) / 2)


def stiff(mj_model):
    """Contact as hard as MuJoCo has it, so that feet neither sink in nor creep."""
    mj_model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    mj_model.opt.cone, mj_model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 1000
    mj_model.opt.timestep = 5e-4
    mj_model.geom_solref[:, 0] = 2e-3
    return mj_model


def stood(path):
    """A row of the table of robots in a world."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if path.suffix == ".urdf":
                model = on_a_floor(path)
                if model is None:
                    return {"verdict": "no posture"}
                mj_model = stiff(states.to_model(model))
                if mj_model.ngeom != len(model.geometry):
                    return {"verdict": "not compared", "why": "meshes that MuJoCo cannot read"}
            else:
                model, mj_model = kt.load(path), mujoco.MjModel.from_xml_path(str(path))
        except Exception as error:  # whatever a file may be
            return {"verdict": "not read", "why": str(error).strip().split("\n")[-1][:90]}
        data = mujoco.MjData(mj_model)
        if mj_model.nkey:
            mujoco.mj_resetDataKeyframe(mj_model, data, 0)
        if mj_model.nu != len(model.actuators):
            return {"verdict": "not compared", "why": "an actuator that the loader leaves out"}
        world = kt.World(gravity=model.gravity, timestep=2e-3)
        q = np.clip(states.from_q(model, mj_model, data.qpos), *model.position_limits)
        hinges = [model.v_slice[i].start for i, j in enumerate(model.joint[1:], 1) if j.nv == 1]
        away = np.zeros(model.nv)
        away[hinges] = np.random.default_rng(0).uniform(-0.01, 0.01, len(hinges))
        q = np.clip(model.integrate(q, away), *model.position_limits)
        data.qpos[:] = states.to_q(model, mj_model, q)
        robot = world.add(model, q=q)
        if not model.nv:
            return {"verdict": "not compared", "why": "no freedom"}
        heights = [kt.center_of_mass(model, robot.q)[2]]
        try:
            world.step(1000, control={robot.name: data.ctrl} if mj_model.nu else None)
        except Exception as error:
            return {"verdict": "stopped", "why": str(error)[:200]}
    diverged = data.warning[mujoco.mjtWarning.mjWARN_BADQACC]
    while data.time < 2.0 - 1e-9 and not diverged.number:  # after which time begins anew
        mujoco.mj_step(mj_model, data)
    if diverged.number:
        return {"verdict": "not compared", "why": "MuJoCo diverges"}
    there = states.from_q(model, mj_model, data.qpos)
    heights += [kt.center_of_mass(model, q)[2] for q in (robot.q, there)]
    row = dict(zip(("start", "ours", "theirs"), heights, strict=True))
    row["unsolved"] = world.report().unsolved
    row["moving"] = float(np.abs(world.qd).max(initial=0.0))
    size = max(abs(row["start"]), abs(row["start"] - row["theirs"]))
    same = abs(row["ours"] - row["theirs"]) <= max(0.05 * size, 1e-3)
    return {**row, "verdict": "agrees" if same else "differs"}


class TooLongError(BaseException):
    """A file has taken longer than ``LONGEST``; not an Exception, which some parts expect."""


def in_time(compare, path):
    """A row of the table, or that it takes too long."""

    def stop(*_):
        raise TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        return compare(path)
    except TooLongError:
        return {"verdict": "too long"}
    except Exception as error:  # one that nobody foresaw: it is shown, and the next follows
        return {"verdict": "fails", "why": f"{type(error).__name__}: {str(error)[:160]}"}
    finally:
        signal.alarm(0)


def main(arguments):
    """Print a line for each robot, and the counts by folder."""
    mujoco.set_mju_user_warning(lambda message: None)
    names, known = ("servos", "floating", "random"), set()
    options = {name: f"--{name}" in arguments for name in names}
    standing = "--standing" in arguments
    for folder in (a for a in arguments if not a.startswith("-")):
        counts = {}
        for path in robots([Path(folder).resolve()]):
            text = path.read_bytes()
            if text in known:
                continue
            known.add(text)
            row = in_time(stood if standing else partial(compared, **options), path)
            counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
            shown = " ".join(
                f"{name}={value:.2g}" if isinstance(value, float) else f"{name}={value}"
                for name, value in row.items() if name != "verdict"
            )  # fmt: skip
            print(
                f"{row['verdict']:13s} {path.relative_to(Path(folder).resolve())!s:40s} {shown}",
                flush=True,
            )
        print(folder, counts, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
