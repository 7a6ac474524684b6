"""Film ANYmal trotting in examples/15_walk.py, with contact forces, for docs/images/trot.gif.

python docs/draw_trot.py [file.gif]
"""

import os
import runpy
import sys
import tempfile
from pathlib import Path

import kinetree as kt

ROOT = Path(__file__).resolve().parents[1]


def main(path):
    """Write the film: one stride."""
    path = Path(path).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        names = runpy.run_path(str(ROOT / "examples" / "15_walk.py"))
        os.chdir(ROOT)
    walk, stride = names["walk"], 2 * names["STEP"]
    shown = walk[(walk.t >= 4 * stride) & (walk.t < 5 * stride)]
    contacts = kt.viewer.contacts_of(shown, names["scene"])
    kt.viewer.record(shown, path, contacts=contacts, size=(480, 300), rate=20, zoom=1.3)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images" / "trot.gif")
