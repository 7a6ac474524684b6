"""Prints the Python that .venv is made with: the one that runs this, or a quicker build of it.

Python that pyenv compiled without profile-guided optimisation, its default,
takes an eighth (numerical tests) to a fifth (plain Python) longer than that of a distribution.
"""

import os
import subprocess
import sys
import sysconfig


def quickest(python, arguments, system="/usr/bin"):
    """The path of an interpreter.

    Args:
        python: that of an interpreter of this version.
        arguments: it was compiled with.
        system: where a distribution has its own.
    """
    other = os.path.join(system, "python{}.{}".format(*sys.version_info))
    if python.startswith(system) or "--enable-optimizations" in arguments:
        return python
    if not os.access(other, os.X_OK):
        return python
    can = subprocess.run([other, "-c", "import venv, ensurepip"], capture_output=True)
    return python if can.returncode else other


if __name__ == "__main__":
    print(quickest(sys.executable, sysconfig.get_config_var("CONFIG_ARGS") or ""))
