"""Film of a learned walk and the curve of its learning, for docs/images/walk.gif and walk.png.

python examples/learn_to_walk.py --device cuda       # writes walk.npz and walk.csv
python docs/draw_walk.py walk.npz walk.csv [folder]
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

import kinetree as kt

mpl.use("agg")
import matplotlib.pyplot as plt


def film(motion, path):
    """Two strides of the walk, followed from the side."""
    model = kt.contact.with_ground(kt.samples.quadruped())
    shown = (motion["t"] >= 4.0) & (motion["t"] < 4.79)  # two strides
    kt.viewer.record(
        model, path, motion["q"][shown], t=motion["t"][shown], size=(480, 300), rate=20, zoom=1.2
    )


def curve(path, table):
    """Mean reward of a control step over wall time, and what the simulation took of it."""
    reward, _, seconds, simulation = table.T
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    axes.plot(seconds, reward, linewidth=1)
    share = simulation[-1] / seconds[-1]
    axes.set(
        xlabel="wall time [s]", ylabel="mean reward of a control step",
        title=f"PPO, 4,096 quadrupeds, one H200; {share:.0%} of the time is simulation",
        xlim=(0, None),
    )  # fmt: skip
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def main(motion, table, folder=Path(__file__).parent / "images"):
    """Write both."""
    film(np.load(motion), Path(folder) / "walk.gif")
    curve(Path(folder) / "walk.png", np.genfromtxt(table, delimiter=",", skip_header=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
