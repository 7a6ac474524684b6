"""Draw docs/two_link.png: the equations of motion of the planar 2R arm, as kinetree prints them.

python docs/make_two_link.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sympy as sp

import kinetree as kt


def two_link_arm(L1, L2, m1, m2, g):
    """Point masses at the ends of two links; motion in the x-y plane, gravity along -y."""
    point = np.zeros((3, 3), dtype=int)
    return (
        kt.ModelBuilder("2R arm", gravity=(0, -g, 0))
        .body(
            "upper",
            joint=kt.Revolute("z"),
            inertia=kt.Inertia.from_mass_center(m1, (L1, 0, 0), point),
        )
        .body(
            "fore",
            on="upper",
            joint=kt.Revolute("z"),
            at=(L1, 0, 0),
            inertia=kt.Inertia.from_mass_center(m2, (L2, 0, 0), point),
        )
        .build()
    )


def lines(equations, most=3):
    """The LaTeX of the equations, broken after some terms."""
    for row in equations.latex().splitlines()[1:-1]:
        left, _, right = row.removesuffix(r" \\").partition("&=")
        terms, depth = [""], 0
        for word in right.split():
            if word in ("+", "-") and depth == 0 and terms[-1]:
                terms.append("")
            depth += word.count(r"\left") - word.count(r"\right")
            terms[-1] += f" {word}"
        for k in range(0, len(terms), most):
            text = "".join(terms[k : k + most])
            spaced = text.replace(r"\cos", r"\,\cos").replace(r"\sin", r"\,\sin")
            yield f"${left.strip()} =$" if k == 0 else "", f"${spaced}$"


def main():
    """Draw the picture."""
    arm = two_link_arm(*sp.symbols("L1 L2 m1 m2 g"))
    equations = kt.equations_of_motion(arm, coordinates="theta")
    rows = list(lines(equations))
    figure = plt.figure(figsize=(8.7, 0.42 * len(rows) + 0.1), dpi=150)
    for k, (left, right) in enumerate(rows):
        height = 1 - (k + 0.6) / (len(rows) + 0.2)
        options = {"fontsize": 13, "va": "center", "math_fontfamily": "cm"}
        figure.text(0.075, height, left, ha="right", **options)
        figure.text(0.085, height, right, ha="left", **options)
    figure.savefig(Path(__file__).with_name("two_link.png"))


if __name__ == "__main__":
    main()
