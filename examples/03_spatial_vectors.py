"""Spatial vectors by themselves: a body on a hinge, in six lines of algebra.

This is the two-body problem of Featherstone's beginner's guide: a force acts on one body, which
carries another on a frictionless hinge. How do they accelerate?
"""

import numpy as np

from kinetree.spatial import Force, Inertia, Motion

# Both bodies in coordinates at the mass centre of the first, at rest.
I1 = Inertia.from_mass_center(2.0, (0, 0, 0), np.diag([0.2, 0.3, 0.4]))
I2 = Inertia.from_mass_center(1.0, (0.8, -0.2, 0.1), np.diag([0.1, 0.2, 0.25]))
axis, pivot = np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.0, 0.1])
s = Motion(axis, np.cross(pivot, axis))
f = Force((0.1, -0.2, 0.3), (1.0, 2.0, 3.0))

# What the first body feels of the second: everything but what the hinge lets go.
Is = I2 @ s
IA = I1.to_matrix() + I2.to_matrix() - np.outer(Is.to_array(), Is.to_array()) / s.dot(Is)
a1 = Motion.from_array(np.linalg.solve(IA, f.to_array()))
alpha = -s.dot(I2 @ a1) / s.dot(Is)

print("first body: angular", np.round(a1.angular, 6), " linear", np.round(a1.linear, 6))
print("hinge:     ", round(float(alpha), 6), "rad/s²")
assert np.allclose(a1.linear, [0.3694223097, 0.7540711759, 1.1975410153])
assert np.isclose(alpha, -0.9343314221)

# The types know what makes no sense.
try:
    a1 + f
except TypeError as error:
    print("a1 + f:    ", error)
