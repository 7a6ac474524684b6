"""Equations on paper.

The equations of motion as formulas, to read, check by hand, print and teach: the algorithms that
compute numbers also run on symbols.
"""

# %%
# A cart with a pole. Which parameters should be symbols? They are selected by name: gravity,
# masses, mass centres, placements of joints. The others stay numbers.

import matplotlib.pyplot as plt
import numpy as np
import sympy as sp

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m1, m2, L, g = sp.symbols("m1 m2 L g", positive=True)


def point_mass(mass, length):
    return kt.Inertia.from_mass_center(mass, (0, 0, -length), np.zeros((3, 3), dtype=int))


cart_pole = (
    kt.ModelBuilder("cart-pole", gravity=(0, 0, -g))
    .body("cart", joint=kt.Prismatic("x"), inertia=point_mass(m1, 0))
    .body("pole", on="cart", joint=kt.Revolute("y"), inertia=point_mass(m2, L))
    .build()
)
eq = kt.equations_of_motion(cart_pole)
print(eq.latex())

# %%
# The results are SymPy matrices: $H$ is the inertia matrix, $C$ the velocity terms, $g$ gravity. As
# a picture, for those who do not read LaTeX:

x, theta = eq.q
shown = {"H": eq.H, "C": eq.C, "g": eq.g}
fig = plt.figure(figsize=(5.6, 2.2))
for k, (name, matrix) in enumerate(shown.items()):
    rows = [
        ",\\quad ".join(sp.latex(x).replace("qd", "\\dot q") for x in matrix.row(i))
        for i in range(2)
    ]
    for i, row in enumerate(rows):
        fig.text(0.05, 0.85 - 0.3 * k - 0.13 * i, f"${name}_{i + 1}:\\quad {row}$", fontsize=10)

# %%
# Check it by hand. When the pole hangs at rest, a force on the cart accelerates both masses: the
# inertia of the first joint is $m_1 + m_2$. Energy is conserved because $\dot H - 2C$,
# with the Coriolis matrix $C$, is skew-symmetric.

assert sp.simplify(eq.H[0, 0] - (m1 + m2)) == 0
rate = sum((sp.diff(eq.H, q) * qd for q, qd in zip(eq.q, eq.qd, strict=True)), sp.zeros(2))
skew = sp.simplify(rate - 2 * eq.coriolis_matrix)
print("skew-symmetric:", sp.simplify(skew + skew.T) == sp.zeros(2))

# %%
# From formulas to a transfer function: linearise about the upright position, $\theta = \pi$, where
# sine and cosine are known, and find the unstable pole of the pendulum.

(_, thetad), (xdd, thetadd) = eq.qd, eq.qdd
F = sp.Symbol("F")
motion = sp.solve([eq.tau[0] - F, eq.tau[1]], [xdd, thetadd])
derivative = sp.diff(motion[thetadd], theta).subs({theta: sp.pi, thetad: 0, F: 0})
print("theta'' = a theta with a =", sp.factor(sp.simplify(derivative)))

# %%
# Are the numbers the same? Insert values and compare with the compiled function.

values = {m1: 1.0, m2: 0.1, L: 0.5, g: 9.81}
numbers = cart_pole.map_numbers(lambda v: float(sp.sympify(v).subs(values)))
rng = np.random.default_rng(0)
q, qd, qdd = rng.standard_normal((3, 2))
by_formula = eq.evaluate(q, qd, qdd, **{str(k): v for k, v in values.items()})
print("agree:", np.allclose(by_formula, kt.inverse_dynamics(numbers, q, qd, qdd)))

# %%
# A function that needs no package, to be copied into the firmware of a controller:

print(eq.python("torques"))

# %%
# Formulas are also good for pictures: the phase portrait of the pole with the cart held. Its energy
# is a formula in two variables, and the motions follow its level lines.

energy = eq.H[1, 1] * thetad**2 / 2 - m2 * g * L * sp.cos(theta)
level = sp.lambdify((theta, thetad), energy.subs(values))
angle, speed = np.meshgrid(np.linspace(-np.pi, 2 * np.pi, 200), np.linspace(-12, 12, 150))
fig, ax = plt.subplots(figsize=(6, 3.2))
ax.contour(angle, speed, level(angle, speed), levels=14, cmap="Blues_r", linewidths=1)
ax.contour(angle, speed, level(angle, speed), levels=[0.1 * 9.81 * 0.5], colors="C1")
ax.set(xlabel="angle [rad]", ylabel="angular velocity [rad/s]")
ax.set_title("inside the orange line it swings, outside it turns over", loc="left")
