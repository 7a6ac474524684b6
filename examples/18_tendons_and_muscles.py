"""Tendons through space: a ball on a string in a cup's hand, a finger, and an arm with muscles."""

import numpy as np

import kinetree as kt
from kinetree import geometry as shapes

# --- a ball on a string: the string is a tendon with a largest length -----------------------------

LENGTH = 0.3
cup = kt.ModelBuilder("ball in cup")
cup.body("carriage", joint=kt.Prismatic("x"), inertia=kt.shapes.box(0.1, 0.1, 0.1, mass=0.5))
cup.body(
    "cup", on="carriage", joint=kt.Prismatic("z"), inertia=kt.shapes.box(0.1, 0.1, 0.1, mass=0.3)
)
for side in (-1, 1):
    cup.geometry(shapes.Box((0.01, 0.12, 0.08)), on="cup", at=(0.055 * side, 0, 0.04))
    cup.geometry(shapes.Box((0.1, 0.01, 0.08)), on="cup", at=(0, 0.055 * side, 0.04))
cup.geometry(shapes.Box((0.12, 0.12, 0.01)), on="cup", at=(0, 0, -0.005))
cup.body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.02, mass=0.05))
cup.geometry(shapes.Sphere(0.02), on="ball")
cup.frame("handle", on="cup", at=(0, 0, -0.012))
cup.tendon("string", path=("handle", "ball"), upper=LENGTH)
for axis, joint in (("x", "carriage_joint"), ("z", "cup_joint")):
    cup.actuator(axis, joint=joint, kp=400.0, kv=40.0)
cup = cup.build()

world = kt.World(timestep=1e-3)
game = world.add(cup, q=[0, 0, 0.05, 0, -0.28, 1, 0, 0, 0])
track = []
for _ in range(3000):
    world.step(control=[0, 0])
    track.append(world.q[2:5] - [world.q[0], 0, world.q[1]])
track = np.array(track)
print("the string is at most", kt.tendon_lengths(cup, world.q)[0].round(6), "m long")
assert kt.tendon_lengths(cup, world.q)[0] < LENGTH + 1e-5
crossings = np.flatnonzero(np.diff(np.sign(track[500:, 0])))
period = 2e-3 * np.diff(crossings).mean()
print("the ball swings with a period of", period.round(3), "s")
assert abs(period - 2 * np.pi * np.sqrt((LENGTH - 0.012) / 9.81)) < 0.06

# --- a finger: one motor pulls a tendon over two knuckles -----------------------------------------

link = kt.shapes.capsule(0.01, 0.08, mass=0.03, at=(0.04, 0, 0))
finger = kt.ModelBuilder("finger").frame("hole", at=(-0.02, 0, -0.02))
on, path = None, ["hole"]
for k in (1, 2):
    name = f"link{k}"
    at = (0, 0, 0) if on is None else (0.08, 0, 0)
    finger.body(
        name, on=on, joint=kt.Revolute("y"), at=at, inertia=link,
        dynamics=kt.JointDynamics(stiffness=0.15, damping=0.002),
    )  # fmt: skip
    carrier = {} if on is None else {"on": on}
    finger.frame(f"knuckle{k}", **carrier, at=kt.spatial.rotx(np.pi / 2) @ kt.spatial.xlt(*at))
    finger.frame(f"palm{k}", **carrier, at=(at[0], 0, -0.03))
    finger.frame(f"pin{k}", on=name, at=(0.04, 0, -0.012))
    path += [kt.Wrap(f"knuckle{k}", "cylinder", 0.012, f"palm{k}"), f"pin{k}"]
    on = name
finger.tendon("flexor", path=path, damping=0.5)
finger = finger.actuator("motor", tendon="flexor", control=(-10, 0)).build()

curled = kt.simulate(finger, [0.0, 0.0], duration=3.0, dt=1e-3, controls=[-8.0])
q = curled.q[-1]
arms = kt.tendon_jacobian(finger, q)[0]
print("a pull of 8 N curls the finger to", np.degrees(q).round(1), "degrees, with arms", arms)
rest = kt.passive_force(finger, q, 0 * q) - 8.0 * arms - kt.gravity_force(finger, q)
assert np.abs(rest).max() < 1e-4  # springs, pull and weight balance

# --- an arm with muscles: both together make it stiff ---------------------------------------------

bone = kt.shapes.capsule(0.03, 0.3, mass=1.5, at=(0, 0, -0.15))
arm = (
    kt.ModelBuilder("arm")
    .body("upper", joint=kt.Revolute("y"), inertia=bone, dynamics=kt.JointDynamics(damping=0.3))
    .body(
        "lower", on="upper", joint=kt.Revolute("y"), at=(0, 0, -0.3), inertia=bone,
        dynamics=kt.JointDynamics(damping=0.3),
    )
    .frame("shoulder", at=kt.spatial.rotx(np.pi / 2))
    .frame("elbow", on="upper", at=kt.spatial.rotx(np.pi / 2) @ kt.spatial.xlt(0, 0, -0.3))
)  # fmt: skip
for way, side in (("front", 1), ("back", -1)):
    arm.frame(f"chest_{way}", at=(0.02 * side, 0, 0.12))
    arm.frame(f"shoulder_{way}", at=(0.06 * side, 0, 0))
    arm.frame(f"upper_{way}", on="upper", at=(0.02 * side, 0, -0.12))
    arm.frame(f"elbow_{way}", on="upper", at=(0.06 * side, 0, -0.3))
    arm.frame(f"lower_{way}", on="lower", at=(0.02 * side, 0, -0.08))


def around(joint, way, begin, end):
    """From bone to bone around a joint."""
    return f"{begin}_{way}", kt.Wrap(joint, "cylinder", 0.035, f"{joint}_{way}"), f"{end}_{way}"


muscles = {
    "anterior": (around("shoulder", "front", "chest", "upper"), (0.17, 0.29), 600.0),
    "posterior": (around("shoulder", "back", "chest", "upper"), (0.17, 0.29), 600.0),
    "biceps": (around("elbow", "front", "upper", "lower"), (0.17, 0.32), 500.0),
    "triceps": (around("elbow", "back", "upper", "lower"), (0.17, 0.32), 500.0),
}
for name, (path, lengths, force) in muscles.items():
    arm.tendon(name, path=path)
    arm.actuator(
        name, tendon=name, control=(0, 1), muscle=kt.Muscle(force, lengths), activation="muscle",
        time_constant=0.01, deactivation_time=0.04,
    )  # fmt: skip
arm = arm.build()

start = np.array([0.0, -0.1])
for u in ([0.05, 0.05, 0.1, 0.05], [0.2, 0.05, 0.1, 0.05]):
    motion = kt.simulate(arm, start, duration=2.0, dt=1e-3, controls=u)
    print("activations", u, "move the arm to", np.degrees(motion.q[-1]).round(1), "degrees")

stiffness = kt.differentiate(kt.driving_force, wrt="q")
held = []
for u in (0.1, 0.6):
    both = np.full(4, u)
    held.append(np.diag(-stiffness(arm, start, 0 * start, both, both)))
    print("with activation", u, "of all muscles the stiffness is", held[-1].round(1), "N·m/rad")
assert np.all(held[1] > 3 * held[0])
assert np.all(held[0] > 0)
