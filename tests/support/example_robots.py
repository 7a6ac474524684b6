"""Robots of the package example-robot-data, here and in Pinocchio."""

import warnings
from importlib.metadata import distribution
from pathlib import Path

from kinetree.errors import ModelWarning

PLACE = "cmeel.prefix/share/example-robot-data/robots"
ROOT = Path(str(distribution("example-robot-data").locate_file(PLACE)))
ROBOTS = {
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
}


def twins(file, floating):
    """The model of a URDF file, bolted down or not, by way of Pinocchio, and Pinocchio's."""
    import pinocchio as pin

    from kinetree.interop import pinocchio as P

    root = [pin.JointModelFreeFlyer()] if floating else []
    theirs = pin.buildModelFromUrdf(str(ROOT / file), *root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of what is not converted: friction
        return P.from_model(theirs), theirs
