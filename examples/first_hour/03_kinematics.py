"""Poses and Jacobians of a tool, in ten thousand configurations at once."""

from pathlib import Path

import numpy as np

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")
rng = np.random.default_rng(0)
lower, upper = m.position_limits
q = rng.uniform(lower, upper, (10_000, m.nq))  # leading axes are batch axes, in every function

T = kt.pose(m, q, "tool")  # (10000, 4, 4)
J = kt.jacobian(m, q, "tool", frame="aligned")  # (10000, 6, 4), angular rows first
print("poses", T.shape, "and Jacobians", J.shape)
print("the tool reaches from", T[:, :3, 3].min(0).round(2), "to", T[:, :3, 3].max(0).round(2), "m")

qd = rng.normal(size=(10_000, m.nv))
v = (J @ qd[:, :, None])[:, 3:, 0]  # of the tool [m/s], with the axes of the world
ahead, behind = (kt.pose(m, q + h * qd, "tool")[:, :3, 3] for h in (1e-6, -1e-6))
assert np.abs(v - (ahead - behind) / 2e-6).max() < 1e-7
print("differences of positions agree with J qd")
