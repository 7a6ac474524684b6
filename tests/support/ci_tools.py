"""The programs of the folder ``.ci`` as modules."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def of_ci(name):
    """One of them, imported."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
