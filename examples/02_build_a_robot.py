"""Build a walking robot's leg, look at it, change it, and weigh it."""

import numpy as np

import kinetree as kt

thigh = kt.shapes.capsule(0.05, 0.35, mass=4.0, at=(0, 0, -0.2))
shank = kt.shapes.capsule(0.04, 0.35, mass=2.5, at=(0, 0, -0.2))
foot = kt.shapes.box(0.2, 0.08, 0.04, mass=0.8, at=(0.05, 0, -0.02))

leg = (
    kt.ModelBuilder("leg")
    .body("thigh", joint=kt.Spherical(), at=(0, 0, 0.9), inertia=thigh)
    .body("shank", on="thigh", joint=kt.Revolute("y"), at=(0, 0, -0.4), inertia=shank)
    .body("foot", on="shank", joint=kt.Universal("yx"), at=(0, 0, -0.4), inertia=foot)
    .frame("toe", on="foot", at=(0.15, 0, -0.04))
    .build()
)
print(leg.summary())

# Positions and velocities differ in length: the hip is a quaternion. Move on the manifold.
q = leg.integrate(leg.neutral(), np.array([0.1, -0.4, 0.0, 0.9, -0.5, 0.0]))
print("\ntoe at", np.round(kt.pose(leg, q, "toe")[:3, 3], 3))

hanging = kt.gravity_force(leg, q)
on_the_moon = kt.gravity_force(leg.replace(gravity=(0, 0, -1.62)), q)
assert np.allclose(on_the_moon, hanging * 1.62 / 9.81)

# Lock the ankle, and the foot becomes part of the shank; its frame stays.
ankle = leg.joint_names[2]
stiff = kt.edit.lock(leg, {ankle: q[leg.q_slice[3]]}, lump=True)
print("\nwith a locked ankle:", stiff)
q_stiff = q[: stiff.nq]
assert np.allclose(kt.pose(stiff, q_stiff, "toe"), kt.pose(leg, q, "toe"))
assert np.allclose(kt.gravity_force(stiff, q_stiff), hanging[: stiff.nv])

# On a floating base, letting go means falling: the mass centre accelerates with g.
flying = kt.edit.floating(leg, inertia=kt.shapes.sphere(0.1, mass=10.0))
q = flying.neutral()
zero = np.zeros(flying.nv)
qdd = kt.forward_dynamics(flying, q, zero, zero)
assert np.allclose(qdd[:6], [0, 0, 0, 0, 0, -9.81])
print("\nin free fall the base accelerates with", np.round(qdd[3:6], 3))
