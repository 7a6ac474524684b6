"""Whether the tests of PyTorch run here.

Its wheel for x86-64 brings gigabytes of CUDA, so pyproject.toml leaves it out of the tests there;
``make torch`` installs it and runs what was left out. Where pyproject.toml requires it, it must be
there, and tests that cannot import it fail.
"""

import re
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

__all__ = ["header", "is_left_out", "is_required", "needs_pytorch"]

ROOT = Path(__file__).resolve().parents[2]


def is_required(**machine) -> bool:
    """Whether pyproject.toml has PyTorch among the tests, on this machine or another one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = map(Requirement, project["optional-dependencies"]["test"])
    (pytorch,) = (r for r in found if r.name == "torch")
    return pytorch.marker is None or pytorch.marker.evaluate(machine)


LEFT_OUT = find_spec("torch") is None and not is_required()


def is_left_out(text) -> bool:
    """Whether this text of a file of tests, or code on a page, cannot run here."""
    return LEFT_OUT and needs_pytorch(text)


def needs_pytorch(text) -> bool:
    """Whether it uses PyTorch: imports it, or goes on with it from the code before."""
    return bool(re.search(r"^import torch$|^[^\"'#\n]*\btorch\.", text, re.M))


def header():
    """What to tell at the beginning: nothing where all tests run."""
    if not LEFT_OUT:
        return None
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    files = [f for f in files if "\nimport torch\n" in f.read_text(encoding="utf-8")]
    names = sorted(f.relative_to(ROOT).as_posix() for f in files)
    return (
        f"PyTorch is not installed, for its wheel brings gigabytes here. Left out, of pages the "
        f"code that uses it: {', '.join(names)}. To run them: make torch"
    )
