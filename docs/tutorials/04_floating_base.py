"""A walking machine with a floating base.

A quadruped is not bolted to the ground. This tutorial finds the ground forces and motor torques
that hold it, shifts its weight, and follows its momentum through a leap.
"""

# %%
# The first joint of a walking robot is a free joint: seven position variables (a position and a
# unit quaternion) and six velocities (angular part first, along the axes of the trunk). No motor
# acts on them.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.quadruped()
q = m.posture("home").q
print("position variables:", m.nq, " velocities:", m.nv)
kt.viewer.picture(m, "quadruped.png", q, size=(520, 360))

# %%
# Because orientation is a quaternion, you cannot simply add to `q`: `m.integrate` moves a
# configuration along a velocity, and `m.difference` is its inverse. The quaternion keeps its
# length.

lean = np.zeros(m.nv)
lean[0] = 0.1  # rad about the axis of the trunk, which points forward
leaning = m.integrate(q, lean)
print("quaternion:", leaning[3:7].round(4), " back:", m.difference(q, leaning)[:3].round(4))

# %%
# Which forces would hold the robot if its trunk were clamped? `gravity_force` returns them: a force
# at the trunk equal to the weight, and joint torques. The first six numbers have to come from the
# *ground*, since no motor acts there.

g = kt.gravity_force(m, q)
mass = sum(part.mass for part in m.inertia[1:])
print(f"mass {mass:.1f} kg, force at the trunk {g[5]:.1f} N = weight {mass * 9.81:.1f} N")

# %%
# A force $f$ at a foot acts on the joints as $J^T f$, so at rest
#
# $$ g = S^T \tau + \sum_k J_k^T f_k . $$
#
# No motor appears in the first six rows: they are six equations for the twelve components of the
# forces at four feet. Least squares selects the smallest forces among all solutions.

feet = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]


def standing(q):
    """Forces of the ground, (4, 3), and torques of the motors, (12,), of least forces."""
    J = np.concatenate([kt.jacobian(m, q, foot, frame="aligned")[3:] for foot in feet])
    g = kt.gravity_force(m, q)
    forces = np.linalg.lstsq(J[:, :6].T, g[:6], rcond=None)[0]
    return forces.reshape(4, 3), (g - J.T @ forces)[6:]


forces, torques = standing(q)
for foot, f in zip(feet, forces, strict=True):
    print(f"{foot:18s} {f.round(2)} N")
print("torques of a front leg [N m]:", torques[:3].round(2))

# %%
# Lean forward: the trunk moves while the feet stay in place. Newton's method finds the joint angles
# from the twelve position errors of the feet and the columns of the legs in the Jacobian.

places = np.concatenate([kt.pose(m, q, foot)[:3, 3] for foot in feet])


def leaning_by(shift):
    """The posture with the trunk moved along x and the feet where they were."""
    posture = q + shift * np.eye(m.nq)[0]
    for _ in range(6):
        J = np.concatenate([kt.jacobian(m, posture, foot, frame="aligned")[3:] for foot in feet])
        off = places - np.concatenate([kt.pose(m, posture, foot)[:3, 3] for foot in feet])
        posture = m.integrate(posture, np.r_[np.zeros(6), np.linalg.solve(J[:, 6:], off)])
    return posture


shifts = np.linspace(-0.12, 0.12, 13)
loads = [standing(leaning_by(shift))[0][:, 2] for shift in shifts]
fig, ax = plt.subplots()
ax.plot(100 * shifts, np.array(loads)[:, [0, 2]], "o-", ms=3, label=["front feet", "rear feet"])
ax.set(xlabel="trunk moved forward [cm]", ylabel="force on each foot [N]")
ax.legend()

# %%
# In the air, the legs can only push against the trunk, and only gravity changes the momentum.
# Simulate a leap, with springs and dampers in the legs, and plot the momentum about the mass
# centre.

qd = np.zeros(m.nv)
qd[[1, 5]] = [1.5, 2.0]  # pitches, and rises at 2 m/s
swing = q[7:] + np.tile([0.0, 0.5, -0.6], 4)
pull = kt.control.PDWithFeedforward(
    m, np.concatenate([q[:7], swing]), np.r_[np.zeros(6), np.full(12, 8.0)],
    np.r_[np.zeros(6), np.full(12, 0.4)], feedforward=None,
)  # fmt: skip
leap = kt.simulate(m, q, qd, duration=0.4, dt=2e-3, controller=pull)
spin = kt.centroidal_momentum(m, leap.q, leap.qd)[:, :3]
print("angular momentum changes by", f"{abs(spin - spin[0]).max():.0e} kg m²/s")
print("momentum error of the report:", f"{leap.report.momentum_error:.0e}")
kt.viewer.picture(leap, "leap.png", at=0.3, ghost=q, size=(400, 310))

# %%
# The same as a page that plays without a server; drag to rotate it.

kt.viewer.save_html(leap, "leap.html")
