"""The same program computes the same bits, whatever is in the cache and in every tier.

Each script runs in a process of its own. Few samples count as many there, so that all changes of
code happen: from general to specialised, and to that which LLVM has optimised.
"""

import os
import subprocess
import sys

START = """
import hashlib, numpy as np, kinetree as kt
from kinetree.codegen import tiers
tiers.SOME, tiers.MANY = 12, 40
rng = np.random.default_rng(0)

def model():
    return kt.samples.chain(2)

def states(m, n):
    return rng.standard_normal((3, n, m.nv))
"""

SCRIPT = (
    START
    + """
for tier in ("auto", "general", "specialised"):
    kt.set_tier(tier)
    m, bits = model(), hashlib.sha256()

    def note(*arrays):
        for a in arrays:
            bits.update(np.ascontiguousarray(a).tobytes())

    for n in (1, 7, 1, 20, 30, 5):  # crosses both limits
        q, qd, qdd = states(m, n)
        note(kt.inverse_dynamics(m, q, qd, qdd), kt.forward_dynamics(m, q, qd, qdd))
        note(*(kt.mass_matrix(m, x) for x in q))
        note(kt.kinetic_energy(m, q[0], qd[0]), kt.poses(m, q[0]))
    m = model()
    for steps in (5, 30, 30):
        motion = kt.rollout(m, states(m, 1)[0, 0], steps=steps)
        note(motion.q, motion.qd)
        motion = kt.simulate(m, states(m, 1)[0, 0], duration=steps * 1e-3)
        note(motion.q, motion.qd, motion.energy)
        print(tier, motion.report.tier, end=" ")
    target = kt.pose(m, np.full(m.nq, 0.3), m.body_names[-1])
    note(kt.inverse_kinematics(m, m.body_names[-1], target).q)
    print(bits.hexdigest())
"""
)

OTHER = (
    START
    + """
m = model()
q, qd, qdd = states(m, 100)
for tier in ("general", "specialised"):
    kt.set_tier(tier)
    kt.inverse_dynamics(m, q, qd, qdd), kt.mass_matrix(m, q[0])
kt.warm_up(m, kt.forward_dynamics)
kt.rollout(kt.samples.double_pendulum(), np.zeros(2), steps=3)
"""
)


def run(script, folder):
    environment = os.environ | {"KINETREE_CACHE": str(folder)}
    environment.pop("KINETREE_OPTIMIZATION", None)
    environment.pop("KINETREE_TIER", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bits_do_not_depend_on_the_cache(tmp_path):
    empty = run(SCRIPT, tmp_path / "own")
    full = run(SCRIPT, tmp_path / "own")
    run(OTHER, tmp_path / "another's")
    another = run(SCRIPT, tmp_path / "another's")
    assert empty == full == another
    lines = empty.splitlines()
    assert len({line.split()[-1] for line in lines}) == 3  # the tiers differ, in the last bits
