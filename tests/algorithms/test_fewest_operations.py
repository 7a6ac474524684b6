"""The formulations the compiler prefers compute the same, in fewer operations."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_state

from kinetree import samples
from kinetree.algorithms import aba, crba, minv, rnea
from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.aba_derivatives import forward_dynamics_derivatives
from kinetree.algorithms.rnea_derivatives import inverse_dynamics_derivatives
from kinetree.codegen.program import Argument, trace
from kinetree.expr.counting import cost

PAIRS = {
    "inverse dynamics": (rnea.inverse_dynamics, fewest.inverse_dynamics, 3),
    "bias force": (rnea.bias_force, fewest.bias_force, 2),
    "gravity force": (rnea.gravity_force, fewest.gravity_force, 1),
    "inertia matrix": (crba.joint_space_inertia, fewest.joint_space_inertia, 1),
    "inverse of the inertia matrix": (minv.inverse_mass_matrix, fewest.inverse_mass_matrix, 1),
    "inverse by factors": (
        minv.inverse_mass_matrix, fewest.inverse_mass_matrix_by_factors, 1,
    ),
    "articulated bodies": (
        aba.forward_dynamics, fewest.forward_dynamics_by_articulated_bodies, 3,
    ),
    "factors": (aba.forward_dynamics, fewest.forward_dynamics_by_inertia_matrix, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("seed", range(8))
def test_the_same_answer_on_every_joint(name, seed):
    reference, lean, count = PAIRS[name]
    rng = np.random.default_rng(seed)
    model = samples.random_tree(6, rng, floating_base=bool(seed % 2))
    arrays = random_state(model, rng)
    condition = max(1.0, np.linalg.cond(crba.joint_space_inertia(model, arrays[0])))
    expected = reference(model, *arrays[:count])
    assert_close(lean(model, *arrays[:count]), expected, ulps=500, condition=condition)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("robot", ["arm", "panda", "quadruped"])
def test_real_robots_take_fewer_operations(name, robot, rng):
    reference, lean, count = PAIRS[name]
    model = getattr(samples, robot)()
    inputs = [Argument(n, (k,)) for n, k in (("q", model.nq), ("qd", model.nv), ("x", model.nv))]

    def operations(algorithm):
        program = trace(lambda *a: algorithm(model, *a), inputs[:count])
        return cost(program.graph, program.roots)

    if name == "factors":  # pays for arms, not for bushes
        assert operations(lean) < 1.2 * operations(reference)
    else:
        assert operations(lean) < operations(reference)


DERIVATIVES = {
    "inverse dynamics": (inverse_dynamics_derivatives, fewest.inverse_dynamics_derivatives),
    "forward dynamics": (forward_dynamics_derivatives, fewest.forward_dynamics_derivatives),
}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("in_body_coordinates", [False, True])
def test_the_same_derivatives(name, in_body_coordinates, rng):
    reference, lean = DERIVATIVES[name]
    model = samples.quadruped()
    arrays = random_state(model, rng)
    condition = max(1.0, np.linalg.cond(crba.joint_space_inertia(model, arrays[0])))
    found = lean(model, *arrays, in_body_coordinates=in_body_coordinates)
    for d, expected in zip(found, reference(model, *arrays), strict=True):
        assert_close(d, expected, ulps=500, condition=condition)


def derivative_costs(model, name):
    """Operations of the reference, in one frame, and in body coordinates."""
    reference, lean = DERIVATIVES[name]
    inputs = [Argument(n, (k,)) for n, k in (("q", model.nq), ("qd", model.nv), ("x", model.nv))]
    ways = (
        lambda *a: reference(model, *a),
        lambda *a: lean(model, *a, in_body_coordinates=False),
        lambda *a: lean(model, *a, in_body_coordinates=True),
    )
    programs = [trace(lambda *a, way=way: tuple(way(*a)[:2]), inputs) for way in ways]
    return [cost(program.graph, program.roots) for program in programs]


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("robot", ["arm", "panda", "quadruped"])
def test_derivatives_take_fewer_operations(name, robot):
    reference, in_one_frame, in_bodies = derivative_costs(getattr(samples, robot)(), name)
    assert in_bodies < in_one_frame < reference


def test_parallel_axes_are_for_one_frame():
    reference, in_one_frame, in_bodies = derivative_costs(samples.scara(), "inverse dynamics")
    assert in_one_frame < in_bodies < reference
