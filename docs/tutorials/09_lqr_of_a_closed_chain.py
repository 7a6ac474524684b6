"""Linearisation and LQR of a closed chain.

The arm of an excavator should stand still and return when it is pushed. Its four joints form a loop
with two degrees of freedom, which the linear model and the controller must take into account.
"""

# %%
# For a tree, $\dot x = A x + B u$ has two states for each joint. In a closed chain the joints
# depend on each other, and a linear model in all joint variables would include directions that open
# the loop. `kt.linearize` uses *independent coordinates*, here the angles of boom and stick.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.excavator()
motors, angles = ["piston_joint", "stick_joint"], ["boom_joint", "stick_joint"]
print(kt.loops.mobility(m, m.neutral()).mobility, "degrees of freedom,", m.nv, "joints")

# %%
# Linearise about an equilibrium. `equilibrium` finds the smallest motor forces that hold the arm:
# the force of the cylinder and the torque at the stick.

rest = np.zeros(m.nv)
q0, tau0 = kt.control.equilibrium(m, m.neutral(), actuated=motors)
print(dict(zip(m.joint_names, tau0.round(1).tolist(), strict=True)))
linear = kt.linearize(m, q0, rest, tau0, independent=angles)
print("A", linear.A.shape, " B", linear.B.shape)
print("eigenvalues [1/s]:", np.sort_complex(linear.eigenvalues).round(3))

# %%
# One eigenvalue is positive: with constant forces the arm falls, slowly at first. The choice of
# coordinates does not matter; at an equilibrium the eigenvalues are a property of the mechanism.

other = kt.linearize(m, q0, rest, tau0, independent=motors)
same = np.allclose(np.sort_complex(other.eigenvalues), np.sort_complex(linear.eigenvalues))
print("the same with the strokes as coordinates:", same)

# %%
# Is the linear model right? Push the arm a little and compare it over half a second with a
# simulation of the full closed chain. `G` maps the velocities of the coordinates to those of all
# joints.

push = np.array([0.02, -0.04])
nudged = kt.simulate(m, q0, linear.G @ push, duration=0.5, dt=5e-3,
                     controller=lambda t, q, qd: tau0)  # fmt: skip
x, predicted = np.r_[0, 0, push], []
one_step = kt.linearize(m, q0, rest, tau0, independent=angles, dt=5e-3)
for _ in nudged.t:
    predicted.append(x)
    x = one_step.A @ x
predicted = np.array(predicted)
moved = nudged.q[:, [0, 3]] - q0[[0, 3]]
print(f"differs by {abs(moved - predicted[:, :2]).max() / abs(moved).max():.1%} of the motion")

# %%
# Now the controller. LQR minimises $\int x^T Q x + u^T R u\,dt$. The states are the two angles and
# their rates. The inputs are the motor forces in newtons and newton-metres, which is why $R$ is so
# small.

balance = kt.control.LQR(
    m, q0, Q=[100, 100, 1, 1], R=[1e-7, 1e-6], actuated=motors, independent=angles
)
print("poles:", np.sort_complex(balance.poles).round(2))
kt.plot.eigenvalues(linear, linear.A - linear.B[:, 2:] @ balance.K, names=["free", "with LQR"])

# %%
# A hard push, first without and then with the controller. The simulation keeps the loop closed at
# every step; the controller reads all joints and acts through the two motors alone.

qd = linear.G @ [0.5, -0.8]
held = kt.simulate(m, q0, qd, duration=1.5, dt=5e-3, controller=balance)
free = kt.simulate(m, q0, qd, duration=0.8, dt=5e-3, controller=lambda t, q, qd: tau0, limits=None)

fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
for k, joint in ((0, "boom"), (3, "stick")):
    color = "C0" if k == 0 else "C1"
    left.plot(held.t, held.q[:, k] - q0[k], color, label=joint)
    left.plot(free.t, free.q[:, k] - q0[k], color, ls="--", lw=1)
left.set(xlabel="time [s]", ylabel="deviation [rad]", title="dashed: constant forces")
left.legend()
right.plot(held.t, held.tau[:, 2] / 1e3, label="cylinder [kN]")
right.plot(held.t, held.tau[:, 3] / 1e3, label="stick [kN m]")
right.set(xlabel="time [s]", title="forces of the motors")
right.legend()
print(
    f"error at the end: {abs(held.q[-1] - q0).max():.1e}, loop error {held.report.loop_error:.0e}"
)
