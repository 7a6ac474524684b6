"""Writing your own kernel.

Write a function for one sample in plain NumPy, and it becomes compiled code that is called like
NumPy, works on batches, can be differentiated, and takes parameters of the model as inputs.
"""

# %%
# Suppose we want to know how hard it is to push an arm at its tool in a given direction: the
# *effective mass*, $1 / (n^T J H^{-1} J^T n)$. All parts exist already. Combined under
# `@kt.kernel`, they are traced once, simplified together and compiled.

import textwrap
import time

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.scara()


@kt.kernel
def effective_mass(m, q, direction: (3,)):
    J = kt.jacobian(m, q, "tool", frame="aligned")[3:]
    row = direction @ J
    return 1 / (row @ kt.inverse_mass_matrix(m, q) @ row)


q = np.array([0.3, 0.8, 0.05, 0.0])
print(f"along x: {effective_mass(m, q, [1.0, 0, 0]):.3f} kg")

# %%
# The function is written for one sample; leading axes of the arguments are batch axes and
# broadcast. A full circle of directions in six postures:

angle = np.linspace(0, 2 * np.pi, 181)
directions = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)
elbows = np.linspace(0.3, 2.2, 6)
postures = np.stack([0 * elbows, elbows, 0 * elbows, 0 * elbows], axis=-1)
masses = effective_mass(m, postures[:, None, :], directions)
print("masses:", masses.shape)

fig, ax = plt.subplots(figsize=(4.4, 4), subplot_kw={"projection": "polar"})
for elbow, row in zip(elbows, masses, strict=True):
    ax.plot(angle, row, label=f"{elbow:.1f} rad", color=plt.cm.viridis(elbow / 2.4))
ax.set_rlim(0, 15)
ax.set_title("effective mass [kg]")
ax.legend(title="elbow", loc="center left", bbox_to_anchor=(1.1, 0.5))

# %%
# How fast is it? `effective_mass.reference` runs the Python code itself, sample by sample, for
# debugging and comparison.

many = m.random_configuration(np.random.default_rng(0), 20_000)
effective_mass(m, many, [1.0, 0, 0])
before = time.perf_counter()
compiled = effective_mass(m, many, [1.0, 0, 0])
per_sample = (time.perf_counter() - before) / len(many)
before = time.perf_counter()
reference = effective_mass.reference(m, many[:3], [1.0, 0, 0])
slower = (time.perf_counter() - before) / 3 / per_sample
print("the same numbers:", np.allclose(compiled[:3], reference))
print("more than 100 times faster:", slower > 100)

# %%
# Derivatives are compiled in the same way: with respect to `q`, to the direction, or twice:

derivative = kt.differentiate(effective_mass, wrt="q")
print("derivatives:", derivative(m, q, [1.0, 0, 0]).round(3))
h = 1e-6
shifted = effective_mass(m, q + h * np.eye(4)[1], [1.0, 0, 0])
print("by differences:", ((shifted - effective_mass(m, q, [1.0, 0, 0])) / h).round(3))

# %%
# Parameters of the model are compiled in as constants. `kt.compile` keeps some of them as inputs:
# what is the effect of a load at the tool? One body, 200 masses.

loaded = kt.compile(effective_mass, m, parameters=f"mass:{m.body_names[-1]}")
loads = np.linspace(0.1, 10, 200)
found = loaded(q, np.array([1.0, 0, 0]), loads)
print("from", found[0].round(2), "to", found[-1].round(2), "kg")

# %%
# Code that depends on values needs care: all samples share one program, so there is no `if` on a
# number. `kt.select` computes both sides and selects one; `kt.repeat` stays a loop in the compiled
# code. Here a pendulum that is damped only while it is slow is simulated inside a kernel:

pendulum = kt.samples.pendulum()


@kt.kernel
def swing(m, q, qd, *, steps, dt=2e-3):
    def step(state):
        q, qd, lowest = state
        damping = kt.select(qd[0] ** 2 < 1.0, 2.0, 0.0)
        qd = qd + dt * kt.forward_dynamics(m, q, qd, -damping * qd)
        q = q + dt * qd
        return q, qd, kt.select(q[0] < lowest, q[0], lowest)

    return kt.repeat(step, (q, qd, q[0]), steps)


start = np.linspace(0, 3, 400)[:, None]
end, _, lowest = swing(pendulum, start, np.zeros(1), steps=1500)
fig, ax = plt.subplots(figsize=(5.6, 3))
ax.plot(start, end, label="after three seconds")
ax.plot(start, lowest, "C1--", label="lowest on the way")
ax.set(xlabel="angle at the start [rad]", ylabel="angle [rad]")
ax.legend()

# %%
# A kernel rejects what it cannot compile. The error gives the line in your file and what to write
# instead:


@kt.kernel
def forbidden(m, q):
    return q[0] if q[0] > 0 else -q[0]


try:
    forbidden(pendulum, [0.5])
except kt.errors.TraceError as error:
    print(textwrap.fill(str(error).splitlines()[-1], 88))
