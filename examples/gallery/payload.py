"""What is in the gripper?

An arm moves an unknown object. Joint torques are linear in its mass, mass centre and inertia, so
these ten numbers follow from noisy torques by least squares; the longer the arm moves, the smaller
the errors.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.ur5()
rng = np.random.default_rng(3)
secret = kt.shapes.box(0.1, 0.2, 0.3, mass=1.7, at=(0.02, -0.03, 0.15)).parameters()

# A lively motion: sines of different frequencies, ten seconds long.
t = np.linspace(0, 10, 1000)[:, None]
w, a = rng.uniform(1, 4, m.nv), rng.uniform(0.3, 0.8, m.nv)
q = m.posture("home").q + a * np.sin(w * t)
qd, qdd = a * w * np.cos(w * t), -a * w**2 * np.sin(w * t)

# What is measured, with 0.3 N m of noise; and what the last body's regressor makes of the rest.
Y = kt.regressor(m, q, qd, qdd)[..., -10:]
noise = 0.3
measured = kt.inverse_dynamics(m, q, qd, qdd) + Y @ secret
measured += noise * rng.standard_normal(measured.shape)
unknown = measured - kt.inverse_dynamics(m, q, qd, qdd)

counts = np.unique(np.geomspace(20, 1000, 40).astype(int))
found, spread = [], []
for n in counts:
    A, b = Y[:n].reshape(-1, 10), unknown[:n].ravel()
    found.append(np.linalg.lstsq(A, b, rcond=None)[0])
    spread.append(noise * np.sqrt(np.diag(np.linalg.pinv(A.T @ A))))
found, spread = np.array(found), np.array(spread)
center = found[-1, 1:4] / found[-1, 0]
print(f"mass {found[-1, 0]:.3f} ± {spread[-1, 0]:.3f} kg, true value 1.7 kg")
print("mass centre [m]:", center.round(3), "true value: [0.02, -0.03, 0.15]")

fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2), sharex=True)
for ax, k, name in ((left, 0, "mass [kg]"), (right, 3, "first moment along z [kg m]")):
    low, high = found[:, k] - 2 * spread[:, k], found[:, k] + 2 * spread[:, k]
    ax.fill_between(counts / 100, low, high, color="#cfe3f3")
    ax.semilogx(counts / 100, found[:, k], label="found, ± two standard deviations")
    ax.axhline(secret[k], color="C1", ls="--", label="true")
    ax.set(xlabel="seconds of motion", ylabel=name)
left.legend(loc="upper right")
