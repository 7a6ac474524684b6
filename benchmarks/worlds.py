"""Worlds in rigid contact beside MuJoCo: the same MJCF, the same steps of 2 ms, one thread.

    python benchmarks/worlds.py                 all scenes, as a table
    python benchmarks/worlds.py --only stack    those whose name contains a word
    python benchmarks/worlds.py --picture P     time against the number of piles, as an image
    python benchmarks/worlds.py --batches       a step of 1,024 worlds at once against one step

Columns: mean time of a step [µs] of both and their ratio; the median of our steps; the first step
[ms]; contacts at the end; the largest residual of our steps, relative to the impulse of the
weight in a step, of both the largest penetration in the second half and the speed at the end.

MuJoCo has its default solver (Newton, pyramidal cones, soft constraints) unless ``--elliptic``.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

import kinetree as kt
from kinetree.contact.finding.shapes import hull_of
from kinetree.model.geometry import Mesh

STEP = 2e-3
HEAD = f'<option timestep="{STEP}"/><size memory="800M"/>'


@dataclass(frozen=True)
class Case:
    """A scene of the benchmark.

    Attributes:
        mjcf: makes the text of the file, or its path.
        steps: how many are timed.
        most: how many times ``mj_step``'s time ours may take.
        rests: whether everything lies still at the end.
    """

    mjcf: Callable[[], str]
    steps: int
    most: float = 2.0
    rests: bool = True


# --- scenes --------------------------------------------------------------------------------------


def world(bodies, extra="", friction=0.8) -> str:
    """An MJCF of bodies on a plane."""
    return f"""<mujoco>{HEAD}<default><geom friction="{friction} 0.005 0.0001"/></default>
<worldbody><geom name="ground" type="plane" size="20 20 1"/>{"".join(bodies)}</worldbody>
{extra}</mujoco>"""


def body(name, geom, at, turn="") -> str:
    """A free body with one shape."""
    x, y, z = at
    return (
        f'<body name="{name}" pos="{x:.9g} {y:.9g} {z:.9g}" {turn}><freejoint name="{name}"/>'
        f"<geom {geom}/></body>"
    )


def box(half) -> str:
    return f'type="box" size="{half[0]} {half[1]} {half[2]}" density="1000"'


def stack(n) -> str:
    """Boxes with edges of 0.2 m on top of each other."""
    return world(body(f"box{k}", box((0.1, 0.1, 0.1)), (0, 0, 0.1 + 0.2 * k)) for k in range(n))


def pyramid(rows=5) -> str:
    """Boxes in rows, each one shorter than the one below."""
    places = [
        (0.21 * (i - (rows - 1 - r) / 2), 0.0, 0.1 + 0.2 * r)
        for r in range(rows)
        for i in range(rows - r)
    ]
    return world(body(f"box{k}", box((0.1, 0.1, 0.1)), p) for k, p in enumerate(places))


def dominoes(n=20) -> str:
    """A row of standing slabs, the first leaning far enough to fall."""
    slab = box((0.01, 0.05, 0.1))
    first = body("slab0", slab, (-0.013, 0, 0.1013), 'euler="0 14 0"')
    rest = [body(f"slab{k}", slab, (0.06 * k, 0, 0.1)) for k in range(1, n)]
    return world([first, *rest], friction=0.5)


def billiard() -> str:
    """Fifteen balls in a triangle and one that runs into them at 5 m/s, between cushions."""
    r = 0.0286
    ball = f'type="sphere" size="{r}" density="1700"'
    places = [
        (0.5 + 2 * r * 0.8661 * i, 2.0002 * r * (j - i / 2), r)
        for i in range(5)
        for j in range(i + 1)
    ]
    walls = [
        f'<geom type="box" size="{a} {b} 0.05" pos="{x} {y} 0.05"/>'
        for x, y, a, b in (
            (1.3, 0, 0.05, 0.8),
            (-0.8, 0, 0.05, 0.8),
            (0.25, 0.7, 1.2, 0.05),
            (0.25, -0.7, 1.2, 0.05),
        )
    ]
    bodies = [body(f"ball{k}", ball, p) for k, p in enumerate([(-0.2, 0.004, r), *places])]
    speed = " ".join(["5 0 0 0 174.8 0"] + ["0"] * 90)
    key = " ".join(f"{x:.9g} {y:.9g} {z:.9g} 1 0 0 0" for x, y, z in [(-0.2, 0.004, r), *places])
    extra = f'<keyframe><key name="home" qpos="{key}" qvel="{speed}"/></keyframe>'
    return world([*walls, *bodies], extra, friction=0.2)


def balls(n) -> str:
    """Balls that fall into an open box."""
    side = max(2, round((n / 2) ** (1 / 3)))
    half = 0.055 * side + 0.03
    walls = [
        f'<geom type="box" size="{a} {b} 0.25" pos="{x} {y} 0.25"/>'
        for x, y, a, b in (
            (half + 0.02, 0, 0.02, half + 0.04), (-half - 0.02, 0, 0.02, half + 0.04),
            (0, half + 0.02, half, 0.02), (0, -half - 0.02, half, 0.02),
        )
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    places = []
    for k in range(n):
        i, j, level = k % side, k // side % side, k // side**2
        shift = rng.uniform(-0.004, 0.004, 2)
        places.append(
            (
                0.11 * (i - (side - 1) / 2) + shift[0],
                0.11 * (j - (side - 1) / 2) + shift[1],
                0.06 + 0.115 * level,
            )
        )
    ball = 'type="sphere" size="0.05" density="1000"'
    return world([*walls, *(body(f"ball{k}", ball, p) for k, p in enumerate(places))], friction=0.5)


def heap(n=1000, seed=1) -> str:
    """Boxes that fall onto a heap between low walls."""
    rng = np.random.default_rng(seed)
    side = 10
    bodies = []
    for k in range(n):
        i, j, level = k % side, k // side % side, k // side**2
        x, y = (
            0.26 * (i - 4.5) + rng.uniform(-0.02, 0.02),
            0.26 * (j - 4.5) + rng.uniform(-0.02, 0.02),
        )
        angles = rng.uniform(-20, 20, 3)
        turn = f'euler="{angles[0]:.6g} {angles[1]:.6g} {angles[2]:.6g}"'
        bodies.append(body(f"box{k}", box((0.08, 0.08, 0.08)), (x, y, 0.15 + 0.26 * level), turn))
    walls = [
        f'<geom type="box" size="{a} {b} 0.6" pos="{x} {y} 0.6"/>'
        for x, y, a, b in (
            (1.6, 0, 0.1, 1.7),
            (-1.6, 0, 0.1, 1.7),
            (0, 1.6, 1.5, 0.1),
            (0, -1.6, 1.5, 0.1),
        )
    ]
    return world([*walls, *bodies], friction=0.6)


def piles(n) -> str:
    """Separate piles of three boxes: islands."""
    side = int(np.ceil(np.sqrt(n)))
    return world(
        body(f"box{k}_{level}", box((0.1, 0.1, 0.1)), (k % side, k // side, 0.1 + 0.2 * level))
        for k in range(n)
        for level in range(3)
    )


# --- robots --------------------------------------------------------------------------------------

ROBOTS = {
    "G1 (Unitree)": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "Go2 (Unitree)": "go2_description/urdf/go2.urdf",
    "ANYmal C (ANYbotics)": "anymal_c_simple_description/urdf/anymal.urdf",
    "Talos (PAL)": "talos_data/robots/talos_reduced.urdf",
    "Centauro (IIT)": "centauro_description/urdf/centauro.urdf",
    "Bolt (ODRI)": "bolt_description/robots/bolt.urdf",
    "Solo (ODRI)": "solo_description/robots/solo12.urdf",
    "Alex (IHMC)": "alex_description/urdf/alex_nub_hands.urdf",
    "Laikago (Unitree)": "laikago_description/urdf/laikago.urdf",
    "SO-101 (LeRobot)": "so_arm_description/urdf/so101.urdf",
    "PR2 (Willow Garage)": "pr2_description/urdf/pr2.urdf",
}
"""Robots of different makers in the package example-robot-data, with all their collision shapes."""


def robot_folder() -> Path:
    """Where the package example-robot-data has its robots."""
    import pinocchio  # of the same installation

    return Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"


def saved(model, file):
    """The MJCF of a model with its solid shapes, meshes as their convex hulls, as a tree."""
    import trimesh

    shapes = []
    file.parent.mkdir(parents=True, exist_ok=True)
    for k, g in enumerate(x for x in model.geometry if x.collision):
        if isinstance(g.shape, Mesh):
            hull, at = hull_of(g.shape), file.parent / f"hull{k}.stl"
            trimesh.Trimesh(hull.vertices, hull.triangles, process=False).export(at)
            g = replace(g, shape=Mesh(str(at)))
        shapes.append(g)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kt.save(model.replace(geometry=tuple(shapes)), file)
    tree = ElementTree.parse(file)
    root = tree.getroot()
    for old in root.findall("option"):
        root.remove(old)
    return tree


def with_exclusions(tree, file) -> str:
    """The file, with bodies that overlap at the start excluded from contact, as its maker would."""
    tree.write(file)
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    pairs = {
        tuple(sorted(int(model.geom_bodyid[g]) for g in c.geom))
        for c in data.contact if c.dist < 1e-3
    }  # fmt: skip
    contact = ElementTree.SubElement(tree.getroot(), "contact")
    for a, b in sorted(pairs):
        names = {f"body{k + 1}": model.body(i).name for k, i in enumerate((a, b))}
        ElementTree.SubElement(contact, "exclude", names)
    tree.write(file)
    return str(file)


def on_ground(model, folder, stiffness=0.8, damping=0.05, lift=0.005) -> str:
    """A robot a little above the ground; springs hold its joints, in units of weight times 1 m."""
    file = Path(folder) / "robot.xml"
    tree = saved(model, file)
    root = tree.getroot()
    compiled = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    weight = 9.81 * compiled.body_subtreemass[0]
    for joint in root.find("worldbody").iter("joint"):
        if joint.get("type") == "free":
            continue
        joint.set("stiffness", f"{stiffness * weight:.6g}")
        joint.set("damping", f"{damping * weight:.6g}")
    root.insert(0, ElementTree.Element("option", timestep=str(STEP)))
    plane = ElementTree.SubElement(
        root.find("worldbody"), "geom", name="ground", type="plane", size="20 20 1", pos="0 0 -5"
    )
    tree.write(file)
    compiled = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    ground, others = compiled.geom("ground").id, range(compiled.ngeom)
    low = min(
        mujoco.mj_geomDistance(compiled, data, ground, g, 100.0, None)
        for g in others
        if g != ground
    )
    plane.set("pos", f"0 0 {low - 5 - lift:.9g}")
    return with_exclusions(tree, file)


def loaded(path, **options):
    """A robot of the package example-robot-data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kt.load(robot_folder() / path, **options)


def on_foot(path, folder) -> str:
    """A robot of the package example-robot-data on the ground; a file in the folder is reused."""
    file = Path(folder) / "robot.xml"
    return str(file) if file.exists() else on_ground(loaded(path, floating_base=True), folder)


def hand(folder) -> str:
    """An Allegro hand, palm up, with a cube on it, its joints under position control."""
    file = Path(folder) / "hand.xml"
    if file.exists():
        return str(file)
    tree = saved(loaded("allegro_hand_description/urdf/allegro_right_hand.urdf"), file)
    root = tree.getroot()
    root.insert(0, ElementTree.Element("option", timestep=str(STEP), gravity="-9.81 0 0"))
    actuators = ElementTree.SubElement(root, "actuator")
    for joint in root.find("worldbody").iter("joint"):
        joint.attrib.update(damping="0.01", armature="1e-4")
        joint.attrib.pop("frictionloss", None)  # of 5 to 12 N·m, more than the motors have
        name = joint.get("name")
        ElementTree.SubElement(actuators, "position", name=name, joint=name, kp="2", kv="0.05")
    cube = """<body name="cube" pos="0.045 0 0.02"><freejoint name="cube"/>
      <inertial pos="0 0 0" mass="0.09" diaginertia="4.7e-5 4.7e-5 4.7e-5"/>
      <geom type="box" size="0.028 0.028 0.028" friction="1 0.005 0.0001"/></body>"""
    root.find("worldbody").append(ElementTree.fromstring(cube))
    return with_exclusions(tree, file)


def grasp(t) -> np.ndarray:
    """Positions that the hand's joints are sent to: closed, fingers swinging to turn the cube."""
    swing = 0.2 * np.sin(2 * np.pi * t)
    finger = [swing, 1.3, 1.0, 0.8]
    return np.array([*finger, *finger, *finger, 1.3, 0.3 + swing, 0.5, 0.7])


# --- running -------------------------------------------------------------------------------------


def cases(folder) -> dict[str, Case]:
    """All scenes by name."""
    humanoid = kt.samples.humanoid()
    found = {
        "2 boxes stacked": Case(lambda: stack(2), 2000),
        "10 boxes stacked": Case(lambda: stack(10), 1000),
        "pyramid of 15 boxes": Case(pyramid, 1000),
        "20 dominoes that fall": Case(dominoes, 1000),
        "billiard break": Case(billiard, 1000, rests=False),
        "50 balls into a box": Case(lambda: balls(50), 1000),
        "200 balls into a box": Case(lambda: balls(200), 500),
        "humanoid falls, 30 s": Case(
            lambda: on_ground(humanoid, folder / "humanoid", 0.0, 0.002, lift=0.05), 15000
        ),
        "hand turns a cube": Case(lambda: hand(folder / "hand"), 1500, rests=False),
        "heap of 1,000 boxes": Case(heap, 300, 3.0, rests=False),
    }
    for name, path in ROBOTS.items():
        where = folder / path.partition("/")[0]
        found[name] = Case(lambda path=path, where=where: on_foot(path, where), 1000)
    return found


def theirs(text, case, control, elliptic=False) -> dict:
    """Times and quality of MuJoCo's steps."""
    read = (
        mujoco.MjModel.from_xml_string if text.lstrip()[0] == "<" else mujoco.MjModel.from_xml_path
    )
    model = read(text)
    if elliptic:
        model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    data, deep = mujoco.MjData(model), 0.0
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    spent = 0.0
    for k in range(case.steps):
        if control is not None:
            data.ctrl[:] = control(data.time)
        start = time.thread_time()
        mujoco.mj_step(model, data)
        spent += time.thread_time() - start
        if 2 * k > case.steps:  # robots start with joints beyond their limits
            deep = max(deep, -data.contact.dist.min(initial=0.0))
    return {
        "time": spent / case.steps, "contacts": data.ncon, "deep": deep,
        "speed": float(np.abs(data.qvel).max()),
    }  # fmt: skip


def ours(text, case, control) -> dict:
    """Times and quality of kinetree's steps."""
    if text.lstrip()[0] == "<":
        file = Path(tempfile.mkdtemp()) / "scene.xml"
        file.write_text(text)
        text = str(file)
    start = time.thread_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world = kt.World.from_file(text)
        made = time.thread_time() - start
        if "home" in [p.name for p in world.model.postures]:
            world.reset("home")
    times, deep, residual = [], 0.0, 0.0
    for k in range(case.steps):
        command = None if control is None else control(world.time)
        start = time.thread_time()
        world.step(control=command)
        times.append(time.thread_time() - start)
        report = world.report()
        residual = max(residual, report.residual)
        if 2 * k > case.steps:
            deep = max(deep, report.penetration)
    times = np.array(times)
    return {
        "made": made, "first": times[0], "time": times[1:].mean(), "median": np.median(times),
        "most": times[1:].max(), "contacts": report.contacts, "deep": deep, "residual": residual,
        "speed": float(np.abs(world.qd).max()),
    }  # fmt: skip


def against_piles(counts=(1, 2, 5, 10, 20, 50, 100, 200, 400)):
    """Time of a step [s] for numbers of piles of three boxes at rest, ours and MuJoCo's."""
    rows = []
    for n in counts:
        text = piles(n)
        file = Path(tempfile.mkdtemp()) / "piles.xml"
        file.write_text(text)
        world, model = kt.World.from_file(file), mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)

        def step(data=data, model=model):
            mujoco.mj_step(model, data)

        each = max(1, 100 // n)
        times = np.array([[_spent(f, each) for f in (world.step, step)] for _ in range(12)])
        rows.append((n, *np.median(times[2:], axis=0)))
        print(
            f"{n} piles: {1e6 * rows[-1][1]:.1f} µs, mj_step {1e6 * rows[-1][2]:.1f} µs", flush=True
        )
    return np.array(rows)


def batches(n=1024):
    """A step of each of ``n`` worlds at once, on one thread, beside a step of the engine alone.

    All are in the same state. What is more than the engine's time, the mean of ten steps in one
    call, is what the batch adds: copies of states and memories, cold caches, Python.
    """
    kt.set_threads(1)
    dog = kt.World(timestep=STEP)
    dog.add_ground()
    dog.add("quadruped", name="dog", on="ground")
    file = Path(tempfile.mkdtemp()) / "boxes.xml"
    file.write_text(stack(10))
    print(
        "| worlds | steps a call | engine alone [µs] | batch [µs] | more |\n|---|---|---|---|---|"
    )
    for name, one in (("ten boxes", kt.World.from_file(file)), ("quadruped", dog)):
        one.step(20)
        worlds, machine = one.batch(n), one._whole.steps.machine
        worlds.step(1)
        for steps in (1, 10):
            alone, together = [], []
            for _ in range(7):
                one.reset()
                one.step(21)
                alone.append(_spent(lambda m=machine: m.at_once(10, 0, 1), 1) / 10)
                worlds.reset()
                worlds.step(1)
                together.append(_spent(lambda w=worlds, k=steps: w.step(k), 1) / steps / n)
            a, b = (1e6 * np.median(x) for x in (alone, together))
            print(f"| {n} {name} | {steps} | {a:.1f} | {b:.1f} | {b - a:.1f} |", flush=True)


def _spent(call, times):
    """CPU time of a call [s], the mean of some."""
    start = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - start) / times


def draw(rows, path):
    """Time of a step, and time per pile, against the number of piles."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    n, ours, theirs = rows.T
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for label, y, color in (("kinetree", ours, "C0"), ("MuJoCo, mj_step", theirs, "C1")):
        left.loglog(n, 1e6 * y, "o-", color=color, label=label, ms=4)
        right.semilogx(n, 1e6 * y / n, "o-", color=color, label=label, ms=4)
    left.loglog(n, 1e6 * ours[-1] * n / n[-1], "k:", lw=1, label="proportional")
    left.set(xlabel="piles of three boxes", ylabel="time of a step [µs]")
    above = left.secondary_xaxis("top", functions=(lambda x: 3 * x, lambda x: x / 3))
    above.set_xlabel("bodies")
    right.set(xlabel="piles of three boxes", ylabel="time per pile [µs]")
    right.set_ylim(bottom=0)
    left.legend(frameon=False)
    for axis in (left.xaxis, left.yaxis, right.xaxis, above.xaxis):
        axis.set_major_formatter("{x:,.0f}")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def main():
    """Run the selected scenes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="scenes whose name contains this")
    parser.add_argument("--elliptic", action="store_true", help="MuJoCo with elliptic cones")
    parser.add_argument("--folder", default=None, help="where files of robots are kept")
    parser.add_argument("--picture", default=None, help="draw time against piles instead, here")
    parser.add_argument("--batches", action="store_true", help="many worlds at once instead")
    args = parser.parse_args()
    if args.batches:
        batches()
        return
    if args.picture:
        draw(against_piles(), args.picture)
        return
    folder = Path(args.folder or tempfile.mkdtemp())
    head = ("scene", "ours", "median", "mj_step", "ratio", "at most", "load", "first", "contacts",
            "theirs", "residual", "depth", "theirs", "speed", "theirs")  # fmt: skip
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for name, case in cases(folder).items():
        if args.only.lower() not in name.lower():
            continue
        text = str(case.mjcf())
        control = grasp if name.startswith("hand") else None
        a, b = ours(text, case, control), theirs(text, case, control, args.elliptic)
        numbers = (
            f"{1e6 * a['time']:.1f}", f"{1e6 * a['median']:.1f}", f"{1e6 * b['time']:.1f}",
            f"{a['time'] / b['time']:.2f}", f"{case.most:g}", f"{a['made']:.2f}",
            f"{a['first']:.2f}", a["contacts"], b["contacts"], f"{a['residual']:.1e}",
            f"{a['deep']:.1e}", f"{b['deep']:.1e}", f"{a['speed']:.1e}", f"{b['speed']:.1e}",
        )  # fmt: skip
        print("| " + " | ".join([name, *map(str, numbers)]) + " |", flush=True)


if __name__ == "__main__":
    main()
