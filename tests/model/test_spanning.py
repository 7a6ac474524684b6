"""The choice of a spanning tree: passive cuts, shallow trees, few constraints."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import random_graph

import kinetree as kt
from kinetree.joints import Prismatic, Revolute, Spherical, Universal
from kinetree.model import ConnectivityGraph, JointDynamics, Limits, MechanismGraph
from kinetree.model.graph import best_tree, cut_cost, importance


@pytest.mark.covers("RBDA 8.6", "RBDA 8.10", by=best_tree)
@pytest.mark.parametrize("seed", range(25))
def test_the_chosen_tree_is_the_best_of_all_small_ones(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 6, 3)
    levels = rng.choice([0, 0, 0, 2], len(graph.arcs)).tolist()
    freedoms = rng.integers(1, 4, len(graph.arcs)).tolist()
    chosen = cut_cost(graph, best_tree(graph, levels, freedoms), levels, freedoms)
    every = [cut_cost(graph, arcs, levels, freedoms) for arcs in graph.spanning_trees()]
    best = min(every)
    assert chosen.cuts == best.cuts  # no driven joint is cut that need not be
    assert chosen <= sorted(every)[max(0, len(every) // 50)]  # and the rest is all but the best


@pytest.mark.covers("RBDA 10.2", by=best_tree)
@pytest.mark.parametrize("seed", range(10))
def test_without_preferences_every_body_is_as_near_as_it_can_be(seed):
    graph = random_graph(np.random.default_rng(seed), 12, 5)
    chosen = cut_cost(graph, best_tree(graph, [0] * 16, [1] * 16), [0] * 16, [1] * 16)
    shallow = graph.spanning_tree()
    arcs = shallow.joints[1 : graph.node_count]
    assert chosen == cut_cost(graph, arcs, [0] * 16, [1] * 16)


def test_large_graphs_still_leave_driven_joints_in_the_tree():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 100, 10)
    levels = [0] * len(graph.arcs)
    for k in rng.choice(len(graph.arcs), 20, replace=False):
        levels[k] = 2
    cost = cut_cost(graph, best_tree(graph, levels, [1] * len(levels)), levels, [1] * len(levels))
    assert cost.cuts[0] <= 1
    assert best_tree(ConnectivityGraph(1, ()), [], []) == ()


def platform_leg(graph, k, driven):
    """One leg of a platform: universal, prismatic and spherical joint."""
    at = (np.cos(k), np.sin(k), 0)
    body = kt.shapes.box(0.1, 0.1, 0.4, mass=1.0)
    for part in ("lower", "upper"):
        graph.body(f"{part}{k}", inertia=body)
    graph.joint(f"u{k}", Universal(), predecessor="base", successor=f"lower{k}", at=at)
    graph.joint(f"p{k}", Prismatic("z"), predecessor=f"lower{k}", successor=f"upper{k}",
                at=(0, 0, 1), dynamics=JointDynamics(damping=1.0) if driven else None)  # fmt: skip
    graph.joint(f"s{k}", Spherical(), predecessor=f"upper{k}", successor="platform",
                successor_at=at)  # fmt: skip


def test_a_platform_is_cut_at_its_balls_and_never_at_its_drives():
    graph = MechanismGraph().body("platform", inertia=kt.shapes.box(1, 1, 0.1, mass=5.0))
    for k in range(6):
        platform_leg(graph, k, driven=True)
    model = graph.to_model()
    assert all(name.startswith("s") for name in model.loop_names)
    assert sum(6 - loop.joint.nv for loop in model.loops) == 15
    assert len(model.loops) == 5


def test_the_choice_is_never_worse_than_that_of_the_user():
    model = kt.samples.four_bar()
    graph = MechanismGraph.from_model(model)
    for loop in (*model.joint_names, *model.loop_names):
        tree = [name for name in graph.joint_names if name != loop]
        own = MechanismGraph.from_model(graph.to_model(tree))
        arcs = own.connectivity()
        levels = importance(own._joints, *own._attached_joints())
        freedoms = [1] * len(own.joint_names)
        given = cut_cost(arcs, range(3), levels, freedoms)
        assert cut_cost(arcs, best_tree(arcs, levels, freedoms), levels, freedoms) <= given
    assert "crank_joint" in graph.to_model().joint_names  # which has a motor


def test_postures_go_along_to_another_tree():
    model = kt.samples.four_bar().replace(postures=())
    moving = kt.model.Posture("moving", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    model = model.replace(postures=(moving,))
    graph = MechanismGraph.from_model(model)
    recut = graph.to_model(["coupler_joint", "rocker_joint", "pin"])
    q = np.array(recut.posture("moving").q)
    assert recut.loop_names == ("crank_joint",)
    tree = model.spanning_tree
    for body in model.body_names[1:]:
        here = kt.pose(tree, np.zeros(3), body)
        link = f"{body}_link" if f"{body}_link" in recut.frame_names else body
        assert_close(kt.pose(recut, q, link), here, ulps=1e4)


def test_limits_count_less_than_springs_and_more_than_depth():
    def triangle(of_c, of_b):
        graph = MechanismGraph()
        for name, given in (("a", {}), ("b", of_b)):
            graph.body(name)
            graph.joint(name.upper(), Revolute("x"), predecessor="base", successor=name, **given)
        return graph.joint("C", Revolute("x"), predecessor="a", successor="b", at=(0, 0, 1), **of_c)

    spring = {"dynamics": JointDynamics(stiffness=1.0)}
    bounds, endless = {"limits": Limits(-1, 1)}, {"limits": Limits(effort=3)}
    assert triangle({}, {}).to_model().loop_names == ("C",)
    assert triangle(bounds, {}).to_model().loop_names != ("C",)
    assert triangle(endless, {}).to_model().loop_names == ("C",)
    assert triangle(spring, bounds).to_model().loop_names == ("A",)
    assert triangle(spring, spring).to_model().loop_names == ("A",)
