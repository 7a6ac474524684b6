"""The leg of a Strandbeest.

Theo Jansen's animals walk along the beach, driven by the wind. Eleven bars, whose lengths he calls
holy numbers, turn the rotation of a crank into a step with a flat sole. The leg has seven joints,
three loops and one degree of freedom.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
# Lengths in centimetres, by the letters of their inventor.
A, B, C, D, E, F, G, H, I, J, K, L, M = (
    38, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49, 50, 61.9, 7.8, 15,
)  # fmt: skip


def corner(near, far, opposite):
    """Where the third corner of a triangle is; the second is at (near, 0)."""
    x = (near**2 + far**2 - opposite**2) / (2 * near)
    return np.array([x, 0, np.sqrt(far**2 - x**2)])


hinge, pin = kt.Revolute("-y"), kt.joints.SphereInCylinder("y")
frame = np.array([-A, 0, -L])  # the second fixed pivot; the crank's is the origin
knee, foot = corner(B, D, E), corner(G, I, H)
bars = {  # body: parent, place on it, angle against x for a first guess [°]
    "crank": ("base", (0, 0, 0), 0), "j": ("crank", (M, 0, 0), 140), "k": ("crank", (M, 0, 0), 231),
    "upper": ("base", frame, 65), "c": ("base", frame, -63), "f": ("upper", knee, -60),
    "leg": ("c", (C, 0, 0), 175),
}  # fmt: skip
builder, angles = kt.ModelBuilder("Jansen"), {"base": 0.0}
for name, (on, at, angle) in bars.items():
    builder.body(name, on=on, joint=hinge, at=at, inertia=kt.shapes.rod(30, mass=0.1, axis="x"))
    angles[name] = angle
for name, one, at, other, there in (
    ("P", "j", (J, 0, 0), "upper", (B, 0, 0)),
    ("Q", "k", (K, 0, 0), "c", (C, 0, 0)),
    ("S", "f", (F, 0, 0), "leg", (G, 0, 0)),
):
    builder.loop(name, joint=pin, predecessor=one, successor=other, at=at, successor_at=there)
builder.frame("knee", on="upper", at=knee).frame("foot", on="leg", at=foot)
leg = builder.build()

guess = np.radians([angles[name] - angles[bars[name][0]] for name in bars])
q = kt.loops.assemble(leg, guess, hold={"crank_joint": 0.0})
print("mobility:", kt.loops.mobility(leg, q).mobility)
turn = kt.loops.follow(leg, q, {"crank_joint": np.linspace(0, 2 * np.pi, 121)}).q
at = {name: kt.pose(leg, turn, name)[:, [0, 2], 3] for name in (*bars, "knee", "foot")}
step = at["foot"]
low = step[step[:, 1] < step[:, 1].min() + 2]
print(f"within 2 cm of the ground for {len(low) / 120:.0%} of the turn: {np.ptp(low[:, 0]):.0f} cm")

fig, ax = plt.subplots(figsize=(5, 4.4))
P, S = (kt.pose(leg, turn, n) @ np.array([x, 0, 0, 1.0]) for n, x in (("j", J), ("leg", G)))
P, S = P[:, [0, 2]], S[:, [0, 2]]
for k, shade in ((0, "k"), (30, "0.6"), (60, "0.8")):
    crank, Q, base, knee = at["j"][k], at["leg"][k], frame[[0, 2]], at["knee"][k]
    for path in ([(0, 0), crank, P[k], base, knee, P[k]], [crank, Q, base],
                 [knee, S[k], Q, step[k], S[k]]):  # fmt: skip
        ax.plot(*np.transpose(path), "-", color=shade, lw=1.4 if k == 0 else 0.8, zorder=3 - k / 30)
ax.plot(*step.T, "C1", lw=2)
ax.set(xlabel="x [cm]", ylabel="z [cm]", aspect="equal")
