"""Film of arms that have learned to grasp, and the curve, for docs/images/grasp.gif and grasp.png.

python examples/learn_to_grasp.py --device cuda       # writes grasp.csv and grasp.npz
python docs/draw_grasp.py grasp.csv [folder]          # with grasp.npz in examples
"""

import os
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent


def curve(path, table):
    """Part of the objects that are in the air, at any time of an episode, over wall time."""
    seconds, held = table[:, 2], table[:, 4]
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    axes.plot(seconds, held, linewidth=1)
    share = table[-1, 3] / seconds[-1]
    axes.set(
        xlabel="wall time of learning [s]", ylabel="objects in the air",
        title=f"PPO, 8,190 arms, one H200; {share:.0%} of the time is simulation",
        xlim=(0, None), ylim=(0, 1),
    )  # fmt: skip
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def main(table, folder=DOCS / "images"):
    """Draw both."""
    curve(Path(folder) / "grasp.png", np.genfromtxt(table, delimiter=",", skip_header=1))
    os.chdir(folder)  # where the film goes
    runpy.run_path(str(DOCS.parent / "examples" / "gallery" / "learned_grasp.py"))


if __name__ == "__main__":
    main(*sys.argv[1:])
