"""Film of the quadruped that jumps, for docs/images/jump.gif.

python docs/draw_jump.py [folder]
"""

import runpy
import sys
from pathlib import Path

import kinetree as kt

DOCS = Path(__file__).parent


def main(folder=DOCS / "images"):
    """Run the example, and draw its motion with all shapes of the robot, at half speed."""
    motion = runpy.run_path(str(DOCS.parent / "examples" / "17_jump.py"))["motion"]
    shown = (motion.t >= 0.2) & (motion.t <= 1.1)
    robot = kt.contact.with_ground(kt.samples.quadruped())
    kt.viewer.record(
        robot, Path(folder) / "jump.gif", motion.q[shown], t=motion.t[shown], speed=0.5,
        size=(480, 300), rate=15, direction=(0.35, -1.0, 0.2), zoom=1.3,
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
