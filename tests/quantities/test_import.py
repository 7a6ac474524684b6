"""What an import loads: little, so that it takes a few milliseconds, and the rest when it is used.

Modules are counted, not seconds: these depend on the machine. ``benchmarks/first_answers.py``
measures seconds.
"""

import subprocess
import sys

import pytest

import kinetree as kt

_FEW = 12  # modules of kinetree and of Python: names, errors and what reads the list of names
_NEVER = ("numpy.random", "logging", "concurrent.futures", "html", "shutil", "difflib", "llvmlite")


def loaded_by(code):
    """Names of modules that some code loads, beyond those that NumPy loads."""
    text = f"import sys, numpy\nbefore = set(sys.modules)\n{code}\n"
    text += "print(*sorted(set(sys.modules) - before), sep=',')"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return found.stdout.strip().split(",")


def test_an_import_loads_a_handful_of_modules():
    assert len(loaded_by("import kinetree")) <= _FEW


def test_functions_load_nothing_that_only_compiling_or_messages_need():
    found = loaded_by("import kinetree; kinetree.inverse_dynamics; kinetree.samples.panda")
    assert "kinetree.quantities.dynamics" in found
    assert [name for name in _NEVER if name in found] == []


def test_names_are_the_same_however_they_are_taken():
    code = (
        "from kinetree import *\nimport kinetree as kt, inspect\n"
        "assert jacobian is kt.jacobian is kt.quantities.jacobian\n"
        "assert World is kt.World and 'model' not in kt.__all__ and 'model' in dir(kt)\n"
        "assert set(kt.quantities.__all__) <= set(kt.__all__) <= set(dir(kt))\n"
    )
    loaded_by(code)


def test_a_name_that_is_not_there_is_explained():
    with pytest.raises(
        AttributeError, match="'kinetree' has no attribute 'jacobain'; did you mean"
    ):
        kt.jacobain  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match="'kinetree' has no attribute '__wrapped__'"):
        kt.__wrapped__  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_the_first_call_of_a_function_is_like_every_other():
    code = (
        "import kinetree as kt, inspect\nm = kt.samples.pendulum()\n"
        "shape = inspect.signature(kt.mass_matrix)\n"
        "for _ in range(2):\n"
        "    try: kt.mass_matrix(m, [0.0], speed=1)\n"
        "    except TypeError as error: assert 'speed' in str(error), error\n"
        "    try: kt.mass_matrix(m)\n"
        '    except TypeError as error: assert "mass_matrix() missing" in str(error), error\n'
        "assert kt.mass_matrix(q=[0.0], model=m).shape == (1, 1)\n"
        "assert inspect.signature(kt.mass_matrix) == shape\n"
    )
    loaded_by(code)
