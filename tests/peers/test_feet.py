"""Real robots stand on their feet: ``Scene(pairs="feet")`` and names of links, by eye."""

import warnings

import pytest
from support.example_robots import ROOT

import kinetree as kt
from kinetree.contact import Scene, with_ground

FEET = {
    "go1_description/urdf/go1.urdf": "FR_foot FL_foot RR_foot RL_foot",
    "anymal_b_simple_description/robots/anymal.urdf": "LF_FOOT RF_FOOT LH_FOOT RH_FOOT",
    "talos_data/robots/talos_reduced.urdf": "leg_left_6_link leg_right_6_link",
    "solo_description/robots/solo12.urdf": "FL_FOOT FR_FOOT HL_FOOT HR_FOOT",
    "bolt_description/robots/bolt.urdf": "FL_FOOT FR_FOOT",
}


@pytest.mark.parametrize("name", FEET)
def test_robots_stand_on_their_feet(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the files have besides
        robot = with_ground(kt.load(ROOT / name, floating_base=True))
    feet = FEET[name].split()
    assert Scene(robot, "feet").pair_names == tuple(f"ground/{foot}" for foot in feet)
    by_name = Scene(robot, [("ground", foot) for foot in feet])
    assert by_name.pair_names == tuple(f"ground/{foot}" for foot in feet)
    every = Scene(robot)
    assert len(set(every.pair_names)) == len(every.pairs)
    assert Scene(robot, every.pair_names).pair_names == every.pair_names
