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

_WALKS = {
    "algorithms/test_agreement.py": {
        "test_newton_euler_composite_articulated_and_maximal_agree": 4,
    },
    "algorithms/test_coupled.py": {
        "test_every_quantity_is_that_of_the_tree_reduced_by_hand": 2,
    },
    "algorithms/test_general_texts.py": {
        "test_derivatives_of_dynamics_run_general_code": 3,
        "test_public_functions_run_general_code_that_agrees_with_the_source": 3,
    },
    "algorithms/test_rnea_derivatives.py": {
        "test_every_joint_whose_axes_move": 3,
    },
    "algorithms/test_what_texts_honour.py": {
        "test_functions_are_right_or_name_what_they_do_not_support": 3,
    },
    "arrays/test_public_functions_jax.py": {
        "test_jax_traces_them": 3,
    },
    "cli/test_eval_command.py": {
        "test_every_function_can_be_evaluated": 4,
    },
    "codegen/test_check.py": {
        "test_every_function_agrees_on_all_back_ends": 6,
    },
    "codegen/test_cuda.py": {
        "test_steps_may_write_over_where_they_began": 2,
    },
    "codegen/test_loops_in_c.py": {
        "test_general_code_of_every_quantity": 6,
    },
    "codegen/test_loops_llvm.py": {
        "test_machine_code_computes_what_the_interpreter_means": 2,
    },
    "contact/test_composition.py": {
        "test_patches_that_stay_in_touch_are_springs_and_dampers": 2,
    },
    "contact/test_convex_pairs.py": {
        "test_no_plane_between_shapes_is_wider_and_they_touch_on_their_surfaces": 3,
    },
    "contact/test_cylinder_events.py": {
        "test_as_by_small_steps": 2,
    },
    "contact/test_distance.py": {
        "test_distances_are_proved_and_depths_are_least": 2,
    },
    "contact/test_every_solid.py": {
        "test_nearest_points_of_all_pairs_are_proved": 3,
    },
    "contact/test_gap_rates.py": {
        "test_curvature_of_the_surfaces_gives_the_same_bias": 2,
        "test_rates_of_gaps_are_the_rows_and_the_biases": 2,
    },
    "contact/test_hard_poses.py": {
        "test_bounds_from_both_sides_agree_however_shapes_touch": 4,
    },
    "contact/test_impact.py": {
        "test_single_impacts_follow_the_differential_equation_of_friction": 2,
    },
    "contact/test_pairs_closed.py": {
        "test_a_moved_world_and_swapped_shapes": 2,
        "test_points_are_half_way_between_the_surfaces": 2,
        "test_the_least_gap_is_the_distance_or_the_depth_along_the_best_axis": 2,
        "test_what_rests_keeps_its_features": 2,
    },
    "contact/test_slots.py": {
        "test_the_text_for_a_gpu_gives_the_same": 3,
        "test_a_step_is_that_of_the_unrolled_code": 2,
    },
    "contact/test_supports.py": {
        "test_farthest_points_are_on_the_surface_and_no_point_is_farther": 3,
    },
    "contact/test_terrain.py": {
        "test_nothing_is_below_the_ground_where_a_shape_touches_it": 3,
    },
    "contact/test_two_steps.py": {
        "test_engine_and_unrolled_step_agree": 2,
    },
    "contact/test_unrolled_drives.py": {
        "test_gradients_are_those_of_differences": 2,
    },
    "doctor/test_check_model.py": {
        "test_samples_have_neither_errors_nor_warnings": 3,
    },
    "documents/test_pages.py": {
        "test_example_runs": 3,
        "test_code_on_the_page_runs": 2,
    },
    "documents/test_scripts.py": {
        "test_script_runs_and_has_a_picture": 4,
    },
    "feature_matrix/test_every_door.py": {
        "test_doors_simulate_the_same": 6,
    },
    "feature_matrix/test_every_equation.py": {
        "test_equations_of_docstrings_hold": 6,
    },
    "feature_matrix/test_every_function.py": {
        "test_functions_honour_what_a_model_has_or_say_that_they_do_not": 6,
    },
    "feature_matrix/test_every_simulation.py": {
        "test_motions_honour_what_a_model_has_or_say_that_they_do_not": 6,
    },
    "functional/test_derivatives_of_loops.py": {
        "test_products_agree_with_specialised_code": 3,
    },
    "functional/test_differentiate.py": {
        "test_inverse_dynamics_of_every_joint": 3,
        "test_every_public_function": 3,
    },
    "functional/test_kernel.py": {
        "test_every_public_function_works_inside_a_kernel": 4,
    },
    "functional/test_products.py": {
        "test_products_by_code_for_every_robot_are_those_of_the_derivative": 3,
    },
    "functional/test_second_derivatives.py": {
        "test_forward_dynamics": 3,
        "test_inverse_dynamics": 3,
        "test_kinematics_energy_and_momentum": 3,
    },
    "hostile/test_broken_files.py": {
        "test_broken_files": 2,
    },
    "ik/test_ik_tasks.py": {
        "test_the_gradient_is_the_derivative_of_the_squared_error": 2,
    },
    "loops/test_chart_motion.py": {
        "test_methods_keep_their_order_across_charts": 3,
    },
    "loops/test_linearization_of_loops.py": {
        "test_equations_recursion_and_differences_agree": 2,
    },
    "loops/test_methods_agree.py": {
        "test_every_method_moves_random_mechanisms_alike": 2,
    },
    "loops/test_tangent_dynamics.py": {
        "test_the_plan_and_the_general_way_agree": 2,
    },
    "model/test_gears_on_arrays.py": {
        "test_functions_agree_with_specialised_code": 2,
    },
    "model/test_general_code.py": {
        "test_derivatives_with_axes_that_move_are_general_and_compile_nothing_for_another_robot": 5,
        "test_every_joint_on_the_base_with_armature_and_elsewhere_without": 2,
    },
    "peers/test_mujoco_motion.py": {
        "test_exact_constraints_are_what_stiff_ones_of_mujoco_tend_to": 2,
        "test_stiff_mechanisms_move_as_in_mujoco_at_defaults": 2,
    },
    "peers/test_mujoco_round_trip.py": {
        "test_attachments_come_back": 2,
        "test_mjcf_comes_back_from_mjcf": 2,
    },
    "peers/test_pinocchio_derivatives.py": {
        "test_derivatives_of_the_dynamics": 3,
        "test_products_with_external_forces": 2,
    },
    "peers/test_pinocchio_robots.py": {
        "test_robot": 4,
    },
    "peers/test_pinocchio_whole_body.py": {
        "test_centroidal_momentum_and_inertia": 3,
        "test_jacobians_their_rates_and_derivatives": 3,
    },
    "peers/test_urdf_robots.py": {
        "test_robot": 4,
        "test_round_trip_keeps_the_dynamics": 4,
    },
    "peers/test_usd.py": {
        "test_every_sample_comes_back": 3,
    },
    "quantities/test_batches_with_loops.py": {
        "test_a_batch_gives_what_single_samples_give": 3,
    },
    "quantities/test_hybrid.py": {
        "test_both_methods_equal_the_partitioned_solve_for_random_partitions": 3,
    },
    "quantities/test_kinematics_for_every_robot.py": {
        "test_code_for_every_robot_gives_the_numbers_of_the_source": 2,
        "test_tasks_by_articulated_bodies": 4,
    },
    "simulation/test_constrained_orders.py": {
        "test_projection_keeps_the_order_of_the_integrator": 3,
    },
    "simulation/test_convergence_order.py": {
        "test_dormand_and_prince_have_order_five": 4,
        "test_explicit_integrators_have_their_order": 4,
        "test_integrators_that_solve_equations_have_their_order": 5,
    },
    "simulation/test_on_arrays.py": {
        "test_motions_are_those_of_compiled_steps": 3,
        "test_random_closed_chains_move_as_in_compiled_steps": 3,
    },
    "simulation/test_order_by_door.py": {
        "test_what_acts_is_of_second_order": 6,
    },
    "simulation/test_own_models.py": {
        "test_rollouts_and_gradients_agree_with_compiled_code": 2,
        "test_simulations_of_large_linkages_agree": 2,
    },
    "symbolic/test_equations.py": {
        "test_formulas_agree_with_compiled_functions": 2,
    },
    "worlds/test_arm_through_every_door.py": {
        "test_an_arm_picks_up_a_box_and_holds_it": 2,
    },
    "worlds/test_contact_truth.py": {
        "test_fingers_hold_above_the_limit": 3,
        "test_plates_that_tumble_overlap_only_as_reported": 2,
        "test_random_scenes_are_not_wrong_in_silence": 2,
    },
    "worlds/test_floating_loops.py": {
        "test_motions_are_those_without_contact": 3,
        "test_one_step_is_that_of_the_forward_dynamics": 4,
    },
}
"""Tests of many cases of one kind that take long together: robots, joints, pairs of shapes, public
functions, kinds of mechanisms. One in so many is enough in a run, for it is drawn afresh each time.
Cases that were added because something was wrong there are not among them."""

WALKS = {f"{file}::{test}": n for file, tests in _WALKS.items() for test, n in tests.items()}


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
        taken = set(draw.sample(range(len(several)), math.ceil(len(several) / WALKS[name])))
        found |= {case for k, case in enumerate(several) if k not in taken}
    return found
