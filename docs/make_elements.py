"""Write docs/elements.md, what becomes of every element of MJCF, URDF and SDF.

    python docs/make_elements.py

``tests/loaders/test_elements_page.py`` checks that the page is current.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from loaders.elements_page import PAGE, whole

if __name__ == "__main__":
    PAGE.write_text(whole(), encoding="utf-8")
