"""Walks over all cases in ``make fuzz``, over a fresh sample of them in ``make test``.

``pytest --sample`` runs a part of the cases of each test in ``WALKS``, drawn by a number that it
prints: other ones in every run. ``KINETREE_SAMPLE=number`` draws the same again. Without the option
all of them run, with ``--walks`` all of them and nothing else.
"""

import math
import os
import random
from collections import defaultdict

VARIABLE = "KINETREE_SAMPLE"

WALKS = {
    "algorithms/test_agreement.py::test_newton_euler_composite_articulated_and_maximal_agree": 1
    / 2,
    "algorithms/test_coupled.py::test_every_quantity_is_that_of_the_tree_reduced_by_hand": 1 / 2,
    "algorithms/test_what_texts_honour.py::test_functions_are_right_or_name_what_they_do_not_"
    "support": 1 / 2,
    "cli/test_eval_command.py::test_every_function_can_be_evaluated": 1 / 3,
    "codegen/test_check.py::test_every_function_agrees_on_all_back_ends": 1 / 3,
    "codegen/test_cuda.py::test_steps_may_write_over_where_they_began": 1 / 2,
    "codegen/test_loops_in_c.py::test_general_code_of_every_quantity": 1 / 3,
    "contact/test_convex_pairs.py::test_no_plane_between_shapes_is_wider_and_they_touch_on_their_"
    "surfaces": 1 / 2,
    "contact/test_distance.py::test_distances_are_proved_and_depths_are_least": 1 / 2,
    "contact/test_every_solid.py::test_nearest_points_of_all_pairs_are_proved": 1 / 3,
    "contact/test_gap_rates.py::test_curvature_of_the_surfaces_gives_the_same_bias": 1 / 2,
    "contact/test_gap_rates.py::test_rates_of_gaps_are_the_rows_and_the_biases": 1 / 2,
    "contact/test_hard_poses.py::test_bounds_from_both_sides_agree_however_shapes_touch": 1 / 3,
    "contact/test_impact.py::test_single_impacts_follow_the_differential_equation_of_friction": 1
    / 2,
    "contact/test_pairs_closed.py::test_points_are_half_way_between_the_surfaces": 1 / 2,
    "contact/test_pairs_closed.py::test_a_moved_world_and_swapped_shapes": 1 / 2,
    "contact/test_pairs_closed.py::test_the_least_gap_is_the_distance_or_the_depth_along_the_best_"
    "axis": 1 / 2,
    "contact/test_pairs_closed.py::test_what_rests_keeps_its_features": 1 / 2,
    "documents/test_pages.py::test_example_runs": 1 / 2,
    "documents/test_scripts.py::test_script_runs_and_has_a_picture": 1 / 3,
    "feature_matrix/test_every_door.py::test_doors_simulate_the_same": 1 / 2,
    "feature_matrix/test_every_equation.py::test_equations_of_docstrings_hold": 1 / 2,
    "feature_matrix/test_every_function.py::test_functions_honour_what_a_model_has_or_say_that_they_"
    "do_not": 1 / 2,
    "feature_matrix/test_every_simulation.py::test_motions_honour_what_a_model_has_or_say_that_they_"
    "do_not": 1 / 2,
    "loops/test_methods_agree.py::test_every_method_moves_random_mechanisms_alike": 1 / 2,
    "model/test_gears_on_arrays.py::test_functions_agree_with_specialised_code": 1 / 2,
    "model/test_general_code.py::test_derivatives_with_axes_that_move_are_general_and_compile_nothing"
    "_for_another_robot": 1 / 3,
    "model/test_general_code.py::test_every_joint_on_the_base_with_armature_and_elsewhere_"
    "without": 1 / 2,
    "peers/test_mujoco_motion.py::test_exact_constraints_are_what_stiff_ones_of_mujoco_tend_to": 1
    / 2,
    "peers/test_mujoco_round_trip.py::test_attachments_come_back": 1 / 2,
    "peers/test_mujoco_round_trip.py::test_mjcf_comes_back_from_mjcf": 1 / 2,
    "peers/test_pinocchio_derivatives.py::test_products_with_external_forces": 1 / 2,
    "peers/test_pinocchio_robots.py::test_robot": 1 / 2,
    "peers/test_urdf_robots.py::test_robot": 1 / 2,
    "peers/test_urdf_robots.py::test_round_trip_keeps_the_dynamics": 1 / 2,
    "quantities/test_batches_with_loops.py::test_a_batch_gives_what_single_samples_give": 1 / 2,
    "quantities/test_kinematics_for_every_robot.py::test_code_for_every_robot_gives_the_numbers_of_"
    "the_source": 1 / 2,
    "simulation/test_convergence_order.py::test_dormand_and_prince_have_order_five": 1 / 3,
    "simulation/test_convergence_order.py::test_explicit_integrators_have_their_order": 1 / 3,
    "simulation/test_convergence_order.py::test_integrators_that_solve_equations_have_their_"
    "order": 1 / 3,
    "simulation/test_on_arrays.py::test_random_closed_chains_move_as_in_compiled_steps": 1 / 2,
    "simulation/test_order_by_door.py::test_what_acts_is_of_second_order": 1 / 3,
    "worlds/test_floating_loops.py::test_motions_are_those_without_contact": 1 / 2,
    "worlds/test_floating_loops.py::test_one_step_is_that_of_the_forward_dynamics": 1 / 2,
}
"""Tests of many cases of one kind that take long together, and which part of them is enough in a
run: robots, joints, pairs of shapes, public functions, kinds of mechanisms. Cases that were added
because something was wrong there are not among them."""


def draw_number() -> None:
    """Choose the number that all workers share, unless the environment has one."""
    os.environ.setdefault(VARIABLE, str(random.SystemRandom().randrange(10**6)))


def header() -> str:
    """What is printed before the tests."""
    return f"samples of walks are drawn by {VARIABLE}={os.environ[VARIABLE]}; make fuzz walks all"


def left_out(items, walks_only=False) -> set:
    """Collected tests that are not in the sample, or are no walk."""
    cases, others = defaultdict(list), set()
    for item in items:
        name = item.nodeid.split("[")[0].removeprefix("tests/")
        if name in WALKS:
            cases[name].append(item)
        else:
            others.add(item)
    if walks_only:
        return others
    found = set()
    for name, several in cases.items():
        draw = random.Random(f"{os.environ[VARIABLE]} {name}")
        taken = set(draw.sample(range(len(several)), math.ceil(WALKS[name] * len(several))))
        found |= {case for k, case in enumerate(several) if k not in taken}
    return found
