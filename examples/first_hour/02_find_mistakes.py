"""Find the mistakes in a robot file."""

from pathlib import Path

import kinetree as kt

file = Path(__file__).parent / "broken.urdf"
try:
    kt.load(file)
except kt.LoadError as error:  # the first mistake that keeps it from loading
    print(str(error).replace(str(file), file.name), end="\n\n")

for finding in kt.check(file):  # all mistakes; `kinetree check broken.urdf` prints them, too
    print(f"line {finding.place.line}: {finding.severity}, {finding.part}: {finding.message}")
    print(f"   fix: {finding.fix}")
