"""A four-bar linkage, whose joints are not independent, and what its hinges carry."""

import numpy as np

import kinetree as kt

bar = kt.samples.four_bar()  # assembled at q = 0
print(bar.summary())

q, at_rest = bar.neutral(), np.zeros(bar.nv)
drive = np.array([0.5, 0.0, 0.0])  # half a newton metre on the crank

qdd = kt.forward_dynamics(bar, q, at_rest, drive)
tree = bar.replace(loops=())
print("\nlinkage:          ", np.round(qdd, 3))
print("with the pin open:", np.round(kt.forward_dynamics(tree, q, at_rest, drive), 3))

# The pin holds: both bars accelerate its point alike.
ends = [("coupler", (0, 0, 0.5)), ("rocker", (0, 0, 0.4))]
a, b = (
    kt.acceleration(bar, q, at_rest, qdd, name, kind="classical", frame="aligned", point=point)
    for name, point in ends
)
assert np.allclose(a[3:], b[3:])
print("acceleration of the pin:", np.round(a[3:], 3))

# What each bearing carries, and how many of the constraints are redundant in space.
solution = kt.algorithms.closed.maximal.solution(bar, q, at_rest, drive)
print(f"\n{solution.redundancy} of the constraints are redundant: a planar loop in space")
