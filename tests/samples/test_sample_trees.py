"""Trees of any size, regular and random."""

import numpy as np
from support.closeness import assert_close
from support.motions import frame_pose

from kinetree import samples
from kinetree.joints import REPRESENTATIVES, Free, Prismatic


def test_chain_is_unbranched_and_tree_branches_as_given():
    assert samples.chain(5).parent == (-1, 0, 1, 2, 3, 4)
    assert samples.chain(3).bodies[2].inertia.mass == samples.chain(5).bodies[2].inertia.mass
    assert samples.tree(7, 2).parent == (-1, 0, 1, 1, 2, 2, 3, 3)
    assert samples.tree(7, 1).parent == (-1, 0, 1, 2, 3, 4, 5, 6)
    assert samples.tree(7, 1.5).parent == (-1, 0, 1, 2, 2, 3, 4, 4)
    small = samples.tree(4, 1, taper=0.5)
    assert_close(np.array([b.inertia.mass for b in small.bodies]), 0.125 ** np.arange(4.0))
    flat = samples.tree(3, 1, skew=0.0)
    assert_close(frame_pose(flat, np.array([0.3, 0.4, 0.5]), "body3")[2], np.array([0, 0, 1.0, 0]))


def test_random_trees_meet_every_joint_and_obey_their_options(rng):
    kinds = {type(j) for j in samples.random_tree(300, rng).joint[1:]}
    assert kinds == {type(j) for j in REPRESENTATIVES}
    assert samples.random_tree(5, 1) == samples.random_tree(5, 1)
    assert samples.random_tree(6, rng, branching=0).parent == (-1, 0, 1, 2, 3, 4, 5)
    assert isinstance(samples.random_tree(3, rng, floating_base=True).joint[1], Free)
    only = samples.random_tree(9, rng, joints=[Prismatic("x")])
    assert {type(j) for j in only.joint[1:]} == {Prismatic}
