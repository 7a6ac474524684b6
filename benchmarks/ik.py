"""Inverse kinematics: kinetree against placo, one process, one thread, the same targets.

    python benchmarks/ik.py              10,000 targets, of which placo solves 1,000
    python benchmarks/ik.py --quick      1,000 and 100

Targets are poses at random configurations within the joint limits. Both start from the neutral
configuration, moved to the limits that it exceeds; a target counts as reached when the pose error
(radians and metres in one), measured by Pinocchio, is below 1e-8 and all joints are within their
limits. Failed targets are tried again, up to ten times, from random configurations.

placo is not a dependency of kinetree and needs its own version of Pinocchio, so install it in a
separate environment:

    python -m venv placo-env && placo-env/bin/pip install placo example-robot-data llvmlite
    PYTHONPATH=src placo-env/bin/python benchmarks/ik.py
"""

import sys
import tempfile
import time
import warnings
from importlib.metadata import distribution
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

try:
    import pinocchio as pin
    import placo
except ImportError as error:
    raise SystemExit(f"{error}: this benchmark needs placo and pinocchio\n\n{__doc__}") from None

import kinetree as kt
from kinetree.benchmark import at_full_speed

at_full_speed()

ROBOTS = {
    "Panda": ("panda_description/urdf/panda.urdf", "panda_link8"),
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "tool0"),
}
TOLERANCE, RESTARTS, ITERATIONS, ROUNDS = 1e-8, 10, 100, 3


def main():
    quick = "--quick" in sys.argv
    kt.set_threads(1)
    print(f"placo {distribution('placo').version}, Pinocchio {pin.__version__}, one thread each")
    for name in ROBOTS:
        compare(name, *((1000, 100) if quick else (10_000, 1000)))


def compare(name, count, peer_count):
    """Success and time of both on one robot."""
    urdf, frame = without_meshes(name), ROBOTS[name][1]
    pin_model = pin.buildModelFromUrdf(urdf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        model = kt.interop.pinocchio.from_model(pin_model)
    rng = np.random.default_rng(1)
    lower, upper = pin_model.lowerPositionLimit, pin_model.upperPositionLimit
    targets = poses(pin_model, rng.uniform(lower, upper, (count, pin_model.nq)), frame)

    print(f"\n{name}, frame {frame}: {count} targets ({peer_count} for placo), {ROUNDS} rounds")
    kt.inverse_kinematics(model, frame, targets, restarts=RESTARTS)  # compiles
    ours = {restarts: [] for restarts in (0, RESTARTS)}
    peers = {restarts: [] for restarts in (0, RESTARTS)}
    peer = Placo(urdf, frame, pin_model)
    part = np.array_split(np.arange(peer_count), ROUNDS)
    reached = {}
    for k in range(ROUNDS):
        for restarts in ours:
            start = time.perf_counter()
            result = kt.inverse_kinematics(
                model, frame, targets, restarts=restarts, tolerance=TOLERANCE
            )
            ours[restarts].append((time.perf_counter() - start) / count)
            q = kt.interop.pinocchio.from_q(model, pin_model, result.q)
            good = is_reached(pin_model, q, frame, targets, lower, upper)
            assert np.array_equal(good, result.success), "a success that is none, or the reverse"
            reached["kinetree", restarts] = float(np.mean(good))
        for restarts in peers:
            start = time.perf_counter()
            q = np.array([peer.solve(targets[n], restarts, rng) for n in part[k]])
            peers[restarts].append((time.perf_counter() - start) / len(part[k]))
            good = is_reached(pin_model, q, frame, targets[part[k]], lower, upper)
            reached.setdefault(("placo", restarts), []).append(float(np.mean(good)))
    for restarts in ours:
        a, b = np.array(ours[restarts]) * 1e6, np.array(peers[restarts]) * 1e6
        ratio = b / a
        print(
            f"  {'first attempt' if not restarts else f'up to {restarts} restarts':18}"
            f"kinetree {100 * reached['kinetree', restarts]:7.3f} % in {np.median(a):6.1f} us   "
            f"placo {100 * np.mean(reached['placo', restarts]):6.2f} % in {np.median(b):7.0f} us   "
            f"ratio {np.median(ratio):4.0f} ({ratio.min():.0f} to {ratio.max():.0f})"
        )


class Placo:
    """placo's solver for one frame, with joint limits and restarts."""

    def __init__(self, urdf, frame, pin_model):
        self.robot = placo.RobotWrapper(urdf, placo.Flags.ignore_collisions)
        self.solver = placo.KinematicsSolver(self.robot)
        self.solver.mask_fbase(True)
        self.task = self.solver.add_frame_task(frame, np.eye(4))
        self.task.configure("frame", "soft", 1.0, 1.0)
        # Steps of at most a fifth of a second at full speed: without, it reaches half as many.
        self.solver.dt = 0.2
        self.solver.enable_velocity_limits(True)
        self.frame, self.names = frame, [str(n) for n in pin_model.names][1:]
        self.lower, self.upper = pin_model.lowerPositionLimit, pin_model.upperPositionLimit
        self.start = np.clip(pin.neutral(pin_model), self.lower, self.upper)

    def solve(self, target, restarts, rng):
        """Configuration in the order of the Pinocchio model."""
        self.task.T_world_frame = target
        for attempt in range(restarts + 1):
            q = self.start if attempt == 0 else rng.uniform(self.lower, self.upper)
            for name, value in zip(self.names, q, strict=True):
                self.robot.set_joint(name, value)
            self.robot.update_kinematics()
            for _ in range(ITERATIONS):
                try:
                    self.solver.solve(True)
                except RuntimeError:  # its quadratic programme has no solution from here
                    break
                self.robot.update_kinematics()
                if pose_error(self.robot.get_T_world_frame(self.frame), target) < TOLERANCE:
                    return self.joints()
        return self.joints()

    def joints(self):
        return np.array([self.robot.get_joint(name) for name in self.names])


# --- measuring, by Pinocchio -----------------------------------------------------------------


def pose_error(T, target):
    """Angle and distance in one."""
    turn = pin.log3(np.ascontiguousarray(target[:3, :3] @ T[:3, :3].T))
    shift = target[:3, 3] - T[:3, 3]
    return np.sqrt(turn @ turn + shift @ shift)


def poses(pin_model, q, frame):
    data, number = pin_model.createData(), pin_model.getFrameId(frame)
    found = []
    for sample in q:
        pin.framesForwardKinematics(pin_model, data, sample)
        found.append(data.oMf[number].homogeneous.copy())
    return np.array(found)


def is_reached(pin_model, q, frame, targets, lower, upper):
    error = [pose_error(*pair) for pair in zip(poses(pin_model, q, frame), targets, strict=True)]
    inside = np.all((q >= lower - 1e-9) & (q <= upper + 1e-9), axis=1)
    return (np.array(error) < TOLERANCE) & inside


def without_meshes(name):
    """The robot's file without shapes, which placo would look for."""
    files = distribution("example-robot-data").files or []
    match = next(f for f in files if str(f).endswith(f"robots/{ROBOTS[name][0]}"))
    tree = ElementTree.parse(str(match.locate()))
    for link in tree.getroot().iter("link"):
        for shape in [child for child in link if child.tag in ("visual", "collision")]:
            link.remove(shape)
    path = Path(tempfile.mkdtemp(prefix="kinetree-ik-")) / f"{name}.urdf"
    tree.write(path)
    return str(path)


if __name__ == "__main__":
    main()
