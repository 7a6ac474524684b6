"""An arm lifts objects that it has never seen.

Its policy was learned on a GPU by `examples/learn_to_grasp.py`, from seven objects at random places
with random masses. Here it lifts a box, a cylinder, a ball and an ellipsoid of other sizes, in
double precision on the CPU: 50 times a second it moves a target of the hand, and the fingers.
"""

import sys
from pathlib import Path

import numpy as np

import kinetree as kt

sys.path.append(str(Path(__file__).parents[1]))
import grasping

KINDS = (grasping.Box, grasping.Cylinder, grasping.Ball, grasping.Egg)
SHAPES = [next(s for s in grasping.held_out(40) if isinstance(s, kind)) for kind in KINDS]
policy = grasping.policy_of(Path(grasping.__file__).with_name("grasp.npz"))


def motion(shape, seed):
    """Positions of an arm and an object after every control step of an episode."""
    env = grasping.environment(shape, 1, seed=seed, arrays="numpy")
    seen, q = env.reset(), [env.state["q"][0]]
    for _ in range(grasping.EPISODE - 1):
        seen, *_ = env.step(policy(seen))
        q.append(env.state["q"][0])
    return np.array(q)


motions = [motion(shape, seed) for seed, shape in enumerate(SHAPES)]
for shape, q in zip(SHAPES, motions, strict=True):
    print(f"{type(shape).__name__:9} lifted by {1000 * (q[-1, 11] - q[0, 11]):.0f} mm")

# %%
# The four side by side.

COLORS = ((0.85, 0.3, 0.2, 1), (0.2, 0.5, 0.8, 1), (0.9, 0.7, 0.2, 1), (0.3, 0.65, 0.35, 1))
APART = 0.5  # of two arms [m]
scene = kt.World("four arms")
scene.add_ground()
for k, (shape, q) in enumerate(zip(SHAPES, motions, strict=True)):
    scene.add(kt.samples.panda(), name=f"arm{k}", at=(0, APART * k, 0))
    scene.add(shape, mass=0.1, name=f"object{k}", at=(0.5, APART * k, 0.1), color=COLORS[k])
    q[:, 10] += APART * k
t = grasping.STEP * np.arange(grasping.EPISODE)
film = {"size": (400, 210), "rate": 8, "direction": (1, 0.12, 0.3), "zoom": 1.65}
kt.viewer.record(scene.model, "grasp.gif", np.hstack(motions)[::5], t=t[::5], **film)
