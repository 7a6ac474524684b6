"""Write the dynamics of a robot as C for the ros2_control system beside this file.

    python export.py                     # ../../first_hour/arm.urdf
    python export.py robot.urdf

It writes ``dynamics/robot.c`` and ``.h``, and ``dynamics/joints.h``: names in the order of the
arrays, and what motors can give.
"""

import sys
from pathlib import Path

import numpy as np

import kinetree as kt

HERE = Path(__file__).resolve().parent
ROBOT = HERE.parents[1] / "first_hour" / "arm.urdf"
FUNCTIONS = ["forward_dynamics", "gravity_force", "passive_force"]


def export(robot, folder):
    """Write everything that ``src/kinetree_system.cpp`` includes."""
    m = kt.load(robot)
    if m.nq != m.nv or m.nv != m.body_count:
        sys.exit("this system is for robots on a fixed base, whose joints have one variable each")
    kt.export_c(m, FUNCTIONS, folder, name="robot")
    names = ", ".join(f'"{name}"' for name in m.joint_names)
    efforts = ", ".join(repr(float(min(x, 1e9))) for x in np.ravel(m.effort_limits))
    text = f"""\
// Written by export.py from model '{m.name}'.
#pragma once
namespace joints {{
constexpr int count = {m.nv};
constexpr const char * names[count] = {{{names}}};
constexpr double efforts[count] = {{{efforts}}};  // largest [N m or N]
}}  // namespace joints
"""
    (Path(folder) / "joints.h").write_text(text, encoding="utf-8")
    return m


if __name__ == "__main__":
    m = export(sys.argv[1] if sys.argv[1:] else ROBOT, HERE / "dynamics")
    print(f"wrote the dynamics of {m.name!r} with {m.nv} joints")
