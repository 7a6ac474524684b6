"""Film of the quadruped that is pushed under predictive control, for docs/images/mpc_walk.gif.

python docs/draw_mpc_walk.py [folder]
"""

import runpy
import sys
from pathlib import Path

import numpy as np

import kinetree as kt

DOCS = Path(__file__).parent


def main(folder=DOCS / "images"):
    """Run the example, and draw what happens around the push, at half speed."""
    names = runpy.run_path(str(DOCS.parent / "examples" / "20_mpc_walk.py"))
    t = names["H"] * np.arange(1, len(names["states"]) + 1)
    shown = (t >= names["BEGIN"] - 0.2) & (t <= names["BEGIN"] + 0.9)
    robot = kt.contact.with_ground(kt.samples.quadruped())
    kt.viewer.record(
        robot, Path(folder) / "mpc_walk.gif", names["states"][shown], t=t[shown], speed=0.5,
        size=(480, 300), rate=12, direction=(1.0, -0.6, 0.25), zoom=1.3,
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
