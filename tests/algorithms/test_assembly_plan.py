"""The order in which bodies are joined."""

import numpy as np
import pytest
from support.linkages import four_bar

from kinetree import samples
from kinetree.algorithms.closed.divide_and_conquer import assembly_plan, joint_ends
from kinetree.joints import Revolute
from kinetree.model import ModelBuilder


def steps(step):
    yield step
    for part in step.parts:
        yield from steps(part)


@pytest.mark.covers("RBDA 3.2", "RBDA 7.5", by=assembly_plan)
def test_every_joint_is_closed_once_and_every_body_appears_once(rng):
    for _ in range(10):
        model = samples.random_tree(int(rng.integers(1, 20)), rng)
        plan = assembly_plan(model)
        everything = list(steps(plan))
        assert sorted(j for s in everything for j in s.joints) == list(
            range(1, model.body_count + 1)
        )
        leaves = sorted(s.bodies[0] for s in everything if not s.joints)
        assert leaves == list(range(model.body_count + 1))
        for s in everything:
            if s.joints:
                near, far = s.parts
                assert sorted(near.bodies + far.bodies) == list(s.bodies)
                (j,) = s.joints
                assert model.parent[j] in near.bodies
                assert j in far.bodies


@pytest.mark.covers("RBDA 7.5", by=assembly_plan)
def test_a_chain_takes_a_logarithmic_number_of_parallel_steps():
    for n in (1, 2, 3, 7, 8, 31, 64, 100):
        assert assembly_plan(samples.chain(n)).depth == int(np.ceil(np.log2(n + 1)))


@pytest.mark.covers("RBDA 7.5", by=assembly_plan)
def test_loop_joints_close_together_with_the_tree_joint_of_their_step():
    model = four_bar()
    plan = assembly_plan(model)
    assert joint_ends(model) == {1: (0, 1), 2: (1, 2), 3: (0, 3), 4: (2, 3)}
    multiple = [s.joints for s in steps(plan) if len(s.joints) > 1]
    assert len(multiple) == 1
    assert 4 in multiple[0]


def test_the_base_alone_needs_no_step():
    assert assembly_plan(ModelBuilder().build()).depth == 0
    assert assembly_plan(ModelBuilder().body("a", joint=Revolute("z")).build()).joints == (1,)
