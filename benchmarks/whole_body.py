"""Whole-body control: kinetree against TSID, one process, one thread, the same problem.

    python benchmarks/whole_body.py            200 states, seven repetitions
    python benchmarks/whole_body.py --quick    20 states, three repetitions

The sample quadruped stands on four points, the sample humanoid on two soles of four points. Tasks:
centre of mass, orientation of the trunk, posture, small contact forces; hard constraints: equations
of motion, contacts that stay, friction pyramids and torque limits. Both get the same weights and
gains, and states near the home posture. With two priorities, the posture and small forces come
after the others. A step is one call from Python with a state, up to torques. Times
are those of the processor, which on an idle machine are those of the clock.

TSID is no dependency of kinetree and needs its own Pinocchio; in its wheel 1.7.1 the file
``tsid/tsid/__init__.py`` must be copied one folder up:

    python -m venv tsid-env
    tsid-env/bin/pip install tsid==1.7.1 pin==3.4.0 "cmeel-urdfdom<5" "cmeel-tinyxml2<11" llvmlite \
        lxml daqp
    PYTHONPATH=src tsid-env/bin/python benchmarks/whole_body.py
"""

import os
import sys
import tempfile
import time
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

try:
    import pinocchio as pin
    import tsid
except ImportError as error:
    raise SystemExit(f"{error}: this benchmark needs tsid and pinocchio\n\n{__doc__}") from None

import kinetree as kt
from kinetree.benchmark import at_full_speed
from kinetree.control import CenterOfMassTask, Contact, ForceTask, FrameTask, PostureTask, WholeBody

at_full_speed()

FEET = {
    "quadruped": [f"{e}_{s}_foot" for e in ("front", "rear") for s in ("left", "right")],
    "humanoid": ["left_sole", "right_sole"],
}
SOLE = np.array([(x, y, 0.0) for x in (-0.12, 0.12) for y in (-0.04, 0.04)])
KP, KP_POSTURE, DAMPING, MU = 100.0, 20.0, 20.0, 0.5
WEIGHTS = {"com": 1.0, "trunk": 1.0, "posture": 1e-3, "force": 1e-5}
PAIRS = (
    ("kinetree, two priorities", "kinetree"),
    ("kinetree, two priorities and joint limits", "kinetree, with joint limits"),
)
FLOOR = 1e-8  # TSID's weight of all accelerations and forces


def main():
    count, rounds = (20, 3) if "--quick" in sys.argv else (200, 7)
    print(f"TSID {distribution('tsid').version}, Pinocchio {pin.__version__}, one thread each")
    for name in FEET:
        compare(name, count, rounds)


def compare(name, count, rounds):
    """Times of both on one robot, and how far their answers are apart."""
    model = kt.samples.load(name)
    home, rng = model.posture("home").q, np.random.default_rng(1)
    states = [disturbed(model, name, home, rng) for _ in range(count)]
    peer = Tsid(model, name)
    theirs = [peer.state(q, qd) for q, qd in states]
    steps: dict[str, Any] = {
        "kinetree": lambda: [ours(0.0, q, qd) for q, qd in states],
        "TSID": lambda: [peer(q, v) for q, v in theirs],
        "kinetree, with joint limits": lambda: [limited(0.0, q, qd) for q, qd in states],
        "kinetree, two priorities": lambda: [strict(0.0, q, qd) for q, qd in states],
        "kinetree, two priorities and joint limits": lambda: [both(0.0, q, qd) for q, qd in states],
    }
    ours, limited = controller(model, name, joint_limits=False), controller(model, name)
    strict, both = controller(model, name, 2, joint_limits=False), controller(model, name, 2)
    a, b = np.array(steps["kinetree"]()), np.array([peer.joints(tau) for tau in steps["TSID"]()])
    apart = np.max(np.abs(a[:, 6:] - b)) / np.max(np.abs(a))
    pressed = np.mean([is_pressed(ours.solve(0.0, q, qd), model) for q, qd in states])
    times = {key: [] for key in steps}
    for _ in range(rounds):
        for key, step in steps.items():
            start = time.process_time()
            step()
            times[key].append((time.process_time() - start) / count * 1e6)
    print(
        f"\n{name}: torques of {count} states differ by at most {apart:.1e} of the largest; a cone "
        f"or torque limit is active in {100 * pressed:.0f} % of them"
    )
    ratios = np.array(times["TSID"]) / np.array(times["kinetree"])
    for key, values in times.items():
        print(f"  {key:42s} {min(values):6.0f} µs  ({min(values):.0f} to {max(values):.0f})")
    spread = np.ptp(ratios) / np.median(ratios)
    print(f"  times faster than TSID: {np.median(ratios):.2f}  (spread {100 * spread:.0f} %)")
    for two, one in PAIRS:
        ratios = np.array(times[two]) / np.array(times[one])
        print(
            f"  {two}, over those of {one}: {np.median(ratios):.2f}  "
            f"(from {ratios.min():.2f} to {ratios.max():.2f})"
        )


def disturbed(model, name, home, rng):
    """A state near a posture in which feet do not move, and soles are level.

    TSID's cones are those of the frame of a sole, ours those of the ground.
    """
    change = 0.03 * rng.standard_normal(model.nv)
    if name == "humanoid":
        legs = [n for n in model.joint_names if any(x in n for x in ("hip", "knee", "ankle"))]
        change[model.v_indices("root", *legs)] = 0.0
    q, qd = model.integrate(home, change), 0.2 * rng.standard_normal(model.nv)
    rows = slice(0 if name == "humanoid" else 3, 6)
    J = np.concatenate([kt.jacobian(model, q, f, frame="aligned")[rows] for f in FEET[name]])
    return q, qd - np.linalg.pinv(J) @ (J @ qd)


def is_pressed(found, model):
    """Whether a friction pyramid or a torque limit holds the answer back."""
    f = np.concatenate(list(found.forces.values()))
    cone = np.max(np.abs(f[:, :2]) - MU * f[:, 2:])
    limits = model.effort_limits[6:]
    return cone > -1e-6 or np.max(np.abs(found.tau[6:]) - limits) > -1e-6 or np.min(f[:, 2]) < 1e-6


def controller(model, name, priority=1, **options):
    """The problem for kinetree; ``priority`` of the posture and of small forces."""
    home = model.posture("home").q
    trunk = model.body_names[1]
    tasks = [
        CenterOfMassTask(kt.center_of_mass(model, home), KP, weight=WEIGHTS["com"]),
        FrameTask(
            trunk,
            kt.pose(model, home, trunk)[:3, :3],
            KP,
            task="orientation",
            weight=WEIGHTS["trunk"],
        ),
        PostureTask(home, KP_POSTURE, weight=WEIGHTS["posture"], priority=priority),
    ]
    force = {"weight": WEIGHTS["force"], "priority": priority}
    tasks += [ForceTask(f, np.zeros(3), **force) for f in FEET[name]]
    points = SOLE if name == "humanoid" else np.zeros((1, 3))
    friction = MU * np.sqrt(2)  # TSID's pyramid has its faces where ours has its cone's edges
    contacts = [Contact(f, points, friction, damping=DAMPING) for f in FEET[name]]
    return WholeBody(
        model, tasks, contacts, force_weight=FLOOR, acceleration_weight=FLOOR, **options
    )


class Tsid:
    """The problem for TSID."""

    def __init__(self, model, name):
        urdf, home = as_urdf(model), model.posture("home").q
        free = pin.JointModelFreeFlyer()
        self.robot = tsid.RobotWrapper(urdf, pin.StdVec_StdString(), free, False)
        theirs = self.robot.model()
        self.order = [model.v_indices(n)[0] for n in theirs.names[2:]]
        self.q_order = [model.q_indices(n)[0] for n in theirs.names[2:]]
        q, v = self.state(home, np.zeros(model.nv))
        self.problem = tsid.InverseDynamicsFormulationAccForce("problem", self.robot, False)
        self.problem.computeProblemData(0.0, q, v)
        data = self.problem.data()
        self.kept = [self._com(model, home), self._trunk(model.body_names[1], data)]
        self.kept += [self._posture(q[7:]), self._limits(model), *self._contacts(name, data)]
        p = self.problem
        self.solver = tsid.SolverHQuadProgFast("solver")
        self.solver.resize(p.nVar, p.nEq, p.nIn)

    def __call__(self, q, v):
        data = self.problem.computeProblemData(0.0, q, v)
        found = self.solver.solve(data)
        if found.status != 0:
            raise SystemExit(f"TSID found no answer: status {found.status}")
        return self.problem.getActuatorForces(found)

    def state(self, q, qd):
        """Position and velocity as Pinocchio has them: linear part first, w of quaternions last."""
        base, quaternion = q[:3], q[[4, 5, 6, 3]]
        return (
            np.concatenate([base, quaternion, q[self.q_order]]),
            np.concatenate([qd[3:6], qd[:3], qd[self.order]]),
        )

    def joints(self, tau):
        """Torques in the order of kinetree."""
        found = np.zeros(len(tau))
        found[np.array(self.order) - 6] = tau
        return found

    def _com(self, model, home):
        task = tsid.TaskComEquality("com", self.robot)
        task.setKp(np.full(3, KP))
        task.setKd(np.full(3, 2 * np.sqrt(KP)))
        self._follow(task, "com", kt.center_of_mass(model, home))
        return task

    def _trunk(self, trunk, data):
        task = tsid.TaskSE3Equality("trunk", self.robot, trunk)
        task.setKp(np.full(6, KP))
        task.setKd(np.full(6, 2 * np.sqrt(KP)))
        task.setMask(np.array([0, 0, 0, 1.0, 1, 1]))
        place = self.robot.framePosition(data, self.robot.model().getFrameId(trunk))
        trajectory = tsid.TrajectorySE3Constant("trunk", place)
        task.setReference(trajectory.computeNext())
        self.problem.addMotionTask(task, WEIGHTS["trunk"], 1, 0.0)
        return task

    def _posture(self, q):
        task = tsid.TaskJointPosture("posture", self.robot)
        task.setKp(np.full(self.robot.na, KP_POSTURE))
        task.setKd(np.full(self.robot.na, 2 * np.sqrt(KP_POSTURE)))
        self._follow(task, "posture", q)
        return task

    def _follow(self, task, name, target):
        task.setReference(tsid.TrajectoryEuclidianConstant(name, target).computeNext())
        self.problem.addMotionTask(task, WEIGHTS[name], 1, 0.0)

    def _limits(self, model):
        task, most = tsid.TaskActuationBounds("limits", self.robot), model.effort_limits[self.order]
        task.setBounds(-most, most)
        self.problem.addActuationTask(task, 1.0, 0, 0.0)
        return task

    def _contacts(self, name, data):
        for foot in FEET[name]:
            up, most = np.array([0.0, 0, 1]), 1e4
            place = self.robot.framePosition(data, self.robot.model().getFrameId(foot))
            if name == "humanoid":
                contact = tsid.Contact6d(foot, self.robot, foot, SOLE.T.copy(), up, MU, 0.0, most)
                size = 6
            else:
                contact = tsid.ContactPoint(foot, self.robot, foot, up, MU, 0.0, most)
                contact.useLocalFrame(False)
                size = 3
            contact.setKp(np.zeros(size))
            contact.setKd(np.full(size, DAMPING))
            contact.setReference(place)
            contact.setRegularizationTaskWeightVector(np.eye(size)[:3].sum(axis=0))
            self.problem.addRigidContact(contact, WEIGHTS["force"])
            yield contact


def as_urdf(model):
    """A URDF file of the model without shapes, which starts at its floating base."""
    path = Path(tempfile.mkdtemp()) / "robot.urdf"
    bare = model.replace(geometry=(), contact_pairs=())
    kt.save(bare, path)
    tree = ElementTree.parse(path)
    root = tree.getroot()
    for part in list(root):
        floating = part.tag == "joint" and part.get("type") == "floating"
        if floating or (part.tag == "link" and part.get("name") == "base"):
            root.remove(part)
        elif part.tag == "joint" and part.get("type") == "fixed":
            part.set("name", f"{part.get('name')}_joint")  # Pinocchio wants names to be unique
    tree.write(path)
    return str(path)


if __name__ == "__main__":
    main()
