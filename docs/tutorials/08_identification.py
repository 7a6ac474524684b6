"""Identification.

The drawings of a robot are unreliable. Move it, measure the torques, and find out what they reveal
about its masses, how accurately, and what they cannot reveal.
"""

# %%
# Joint torques are *linear* in the inertial parameters of the bodies, ten for each: mass, mass
# times mass centre, and six moments of inertia. The matrix in this linear relation is the
# regressor.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt
from kinetree.identification import exciting_trajectory, inertial_parameters, parameter_names

plt.style.use(kt.plot.STYLE)
m = kt.samples.scara()
rng = np.random.default_rng(1)
q, qd, qdd = rng.standard_normal((3, 100, m.nv))
Y, p = kt.regressor(m, q, qd, qdd), inertial_parameters(m)
print("regressor:", Y.shape, " parameters:", len(p))
print("Y p is inverse dynamics:", np.allclose(Y @ p, kt.inverse_dynamics(m, q, qd, qdd)))

# %%
# Not all forty can be identified from torques. The mass of the first link has no effect, and that
# of the last one appears only in combination with others. *Base parameters* are the combinations
# that affect the torques.

base = kt.base_parameters(m)
print(len(base), "base parameters, from", len(p), "parameters:")
for label in base.labels:
    print("  ", label)

# %%
# A good motion excites all of them. `exciting_trajectory` generates Fourier series within the
# limits and returns the best of several.

motion = exciting_trajectory(m, period=8.0, samples=400, candidates=4, rng=rng)
fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(motion.t, motion.q, label=m.joint_names)
ax.set(xlabel="time [s]", ylabel="position [rad or m]")
ax.legend(ncols=2)

# %%
# The experiment. On a real robot the torques are measured at the motors; here they come from the
# model, with two per cent of noise.

true = kt.inverse_dynamics(m, motion.q, motion.qd, motion.qdd)
noise = 0.02 * np.std(true, axis=0)
measured = true + noise * rng.standard_normal(true.shape)
found = kt.identify(m, motion.q, motion.qd, motion.qdd, measured)
print(found.summary())

# %%
# Can the error bars be trusted? Errors in units of their standard deviations should be normally
# distributed: most within one, nearly all within two.

scores = (found.values - base.values()) / found.standard_deviations
fig, ax = plt.subplots(figsize=(6, 2.8))
ax.axhspan(-2, 2, color="#cfe3f3")
ax.plot(scores, "o")
ax.set(xlabel="base parameter", ylabel="error / standard deviation", ylim=(-4, 4))
print(f"within two standard deviations: {np.mean(abs(scores) < 2):.0%}")

# %%
# A parameter that cannot be identified does not get a value, but an error that gives the reason.

try:
    found[parameter_names(m)[0]]
except kt.errors.IdentifiabilityError as error:
    print(error)

# %%
# A simulation needs a complete model of physically possible bodies. With `consistent=True`,
# whatever the data do not determine is taken from the initial model, and every inertia is that of a
# possible body. The drawings were wrong by half; the torques of the new model are right.

drawings = m.replace(
    inertia={
        name: kt.Inertia.from_mass_center(1.5 * I.mass, I.center_of_mass, I.rotational_at_center)
        for name, I in zip(m.body_names[1:], m.inertia[1:], strict=True)
    }
)
better = kt.identify(
    drawings, motion.q, motion.qd, motion.qdd, measured, consistent=True, regularisation=0.1
).model
before, after = (
    kt.inverse_dynamics(x, motion.q, motion.qd, motion.qdd) for x in (drawings, better)
)

fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(motion.t, measured[:, 1], ".", color="0.6", ms=4, zorder=3, label="measured")
ax.plot(motion.t, before[:, 1], "C1--", label="drawings")
ax.plot(motion.t, after[:, 1], "C0", label="identified")
ax.set(xlabel="time [s]", ylabel=f"torque of {m.joint_names[1]} [N m]")
ax.legend(ncols=3)
print("error, in units of the noise:", (np.std(after - true, axis=0) / noise).round(2))
