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
    "algorithms/test_aba_derivatives.py": {
        "test_derivatives_equal_the_complex_step": 3,
    },
    "algorithms/test_agreement.py": {
        "test_newton_euler_composite_articulated_and_maximal_agree": 6,
        "test_spatial_newton_euler_agrees_with_the_3d_original": 2,
    },
    "algorithms/test_any_scalar.py": {
        "test_functions_of_the_state": 3,
    },
    "algorithms/test_armature.py": {
        "test_inertia_matrices_have_it_on_their_diagonal": 2,
    },
    "algorithms/test_compensation_within_effort.py": {
        "test_every_door_moves_as_simulate_does": 6,
    },
    "algorithms/test_coupled.py": {
        "test_derivatives_are_those_of_the_reduction_by_hand": 3,
        "test_derivatives_of_public_functions_are_those_of_the_reduction": 3,
        "test_every_quantity_is_that_of_the_tree_reduced_by_hand": 6,
    },
    "algorithms/test_fewest_operations.py": {
        "test_derivatives_take_fewer_operations": 2,
    },
    "algorithms/test_fluids.py": {
        "test_gradients_go_through_fluids": 6,
    },
    "algorithms/test_general_texts.py": {
        "test_derivatives_of_dynamics_run_general_code": 6,
        "test_public_functions_run_general_code_that_agrees_with_the_source": 6,
        "test_texts_for_every_joint_are_recorded_once_for_every_robot": 6,
        "test_texts_for_regular_joints_are_recorded_once_for_every_robot": 3,
    },
    "algorithms/test_joint_space.py": {
        "test_every_kind_of_joint_can_close_a_loop": 3,
    },
    "algorithms/test_loop_constraints.py": {
        "test_the_rate_of_K_qd_is_K_qdd_less_k_on_and_off_the_manifold": 3,
        "test_the_rate_of_the_error_is_the_velocity_error_up_to_the_size_of_the_error": 3,
    },
    "algorithms/test_rnea_derivatives.py": {
        "test_every_joint_whose_axes_move": 3,
    },
    "algorithms/test_spatial_tendons.py": {
        "test_lengths_and_rates_are_those_of_mujoco": 6,
    },
    "algorithms/test_what_texts_honour.py": {
        "test_functions_are_right_or_name_what_they_do_not_support": 3,
    },
    "arrays/test_jax_kind.py": {
        "test_derivatives_in_both_directions_and_of_second_order": 3,
    },
    "arrays/test_public_functions_jax.py": {
        "test_jax_traces_them": 6,
    },
    "cli/test_eval_command.py": {
        "test_every_function_can_be_evaluated": 4,
    },
    "codegen/test_calls.py": {
        "test_both_tiers_take_the_same_steps": 6,
    },
    "codegen/test_check.py": {
        "test_every_function_agrees_on_all_back_ends": 6,
        "test_machine_code_computes_what_the_interpreter_does": 6,
    },
    "codegen/test_cuda.py": {
        "test_cuda_computes_what_the_interpreter_does": 6,
        "test_functions_agree_for_whole_and_partial_warps": 6,
        "test_long_programs_park_values_and_load_the_next_samples": 6,
        "test_nvrtc_compiles_for_several_architectures": 3,
        "test_parts_look_at_what_others_left_for_them": 6,
        "test_steps_may_write_over_where_they_began": 6,
    },
    "codegen/test_cuda_catalogue.py": {
        "test_all_functions_of_a_module": 3,
    },
    "codegen/test_loops_derivatives.py": {
        "test_gradients_are_those_of_the_complex_step": 2,
        "test_rates_are_those_of_the_complex_step": 3,
    },
    "codegen/test_loops_in_c.py": {
        "test_general_code_of_every_quantity": 6,
        "test_nvrtc_compiles_it": 6,
    },
    "codegen/test_loops_llvm.py": {
        "test_machine_code_computes_what_the_interpreter_means": 6,
    },
    "codegen/test_loops_recording.py": {
        "test_the_loops_of_a_text_give_its_numbers": 3,
    },
    "codegen/test_within_arrays.py": {
        "test_code_stays_within_its_arrays": 6,
    },
    "contact/test_composition.py": {
        "test_patches_that_stay_in_touch_are_springs_and_dampers": 6,
        "test_rollouts_move_the_memory_as_simulations_do": 6,
    },
    "contact/test_convex_pairs.py": {
        "test_no_plane_between_shapes_is_wider_and_they_touch_on_their_surfaces": 3,
    },
    "contact/test_cylinder_events.py": {
        "test_a_box_is_a_plane_where_it_has_no_borders": 6,
        "test_as_by_small_steps": 6,
    },
    "contact/test_distance.py": {
        "test_distances_are_proved_and_depths_are_least": 6,
    },
    "contact/test_every_solid.py": {
        "test_nearest_points_of_all_pairs_are_proved": 3,
    },
    "contact/test_fields.py": {
        "test_a_bump_touches_the_face_that_looks_down": 2,
    },
    "contact/test_gap_rates.py": {
        "test_curvature_of_the_surfaces_gives_the_same_bias": 2,
        "test_rates_of_gaps_are_the_rows_and_the_biases": 2,
    },
    "contact/test_hard_poses.py": {
        "test_bounds_from_both_sides_agree_however_shapes_touch": 4,
    },
    "contact/test_impact.py": {
        "test_several_impacts_with_friction_obey_cones_and_create_no_energy": 2,
        "test_single_impacts_follow_the_differential_equation_of_friction": 6,
    },
    "contact/test_impact_parts.py": {
        "test_impulses_are_proportional_to_velocities": 3,
    },
    "contact/test_loop_rows.py": {
        "test_rows_and_errors_are_those_of_the_constraints": 6,
    },
    "contact/test_meshes.py": {
        "test_a_thin_rod_stops_at_walls_and_sheets_or_is_named": 3,
    },
    "contact/test_newton.py": {
        "test_a_pile_of_balls_is_solved": 2,
    },
    "contact/test_pairs_closed.py": {
        "test_a_moved_world_and_swapped_shapes": 3,
        "test_planes_find_the_lowest_point": 6,
        "test_points_are_half_way_between_the_surfaces": 6,
        "test_the_least_gap_is_the_distance_or_the_depth_along_the_best_axis": 3,
        "test_what_rests_keeps_its_features": 3,
    },
    "contact/test_planes.py": {
        "test_corners_that_stand_for_a_hull": 3,
    },
    "contact/test_polyhedra_events.py": {
        "test_block_slides_off_a_table": 6,
        "test_edge_slides_past_the_end_of_an_edge": 6,
        "test_rocking_block_loses_what_housner_says": 6,
    },
    "contact/test_rays.py": {
        "test_the_first_point_is_on_the_surface_and_none_is_before_it": 2,
    },
    "contact/test_rolling_and_spinning.py": {
        "test_top_precesses_at_the_rate_of_its_equation": 6,
    },
    "contact/test_shallow.py": {
        "test_gaps_normals_and_points_are_those_of_the_engine": 4,
        "test_single_precision_is_as_good_as_its_numbers": 4,
    },
    "contact/test_slot_pairs.py": {
        "test_bodies_fall_on_each_other_and_obey_the_laws": 3,
        "test_the_text_for_a_gpu_gives_the_same": 4,
    },
    "contact/test_slots.py": {
        "test_a_step_is_that_of_the_unrolled_code": 6,
        "test_stiff_stops_at_several_joints_of_a_limb_take_energy_and_give_none": 2,
        "test_the_text_for_a_gpu_gives_the_same": 6,
    },
    "contact/test_supports.py": {
        "test_farthest_points_are_on_the_surface_and_no_point_is_farther": 3,
    },
    "contact/test_sweep.py": {
        "test_near_are_the_pairs_whose_boxes_meet_on_the_way": 3,
    },
    "contact/test_terrain.py": {
        "test_nothing_is_below_the_ground_where_a_shape_touches_it": 3,
    },
    "contact/test_two_steps.py": {
        "test_engine_and_unrolled_step_agree": 6,
    },
    "contact/test_unrolled_drives.py": {
        "test_bounded_servos_step_as_in_the_engine": 2,
        "test_coupled_grippers_step_as_in_the_engine": 6,
        "test_gradients_are_those_of_differences": 6,
    },
    "control/test_linearization.py": {
        "test_the_rate_of_the_flow": 6,
    },
    "control/test_optimize.py": {
        "test_bodies_that_turn_reach_far_poses_in_few_iterations": 4,
        "test_gradients_vanish_for_bodies_that_turn": 2,
    },
    "control/test_whole_body.py": {
        "test_a_contact_of_points_turns_as_they_allow": 3,
    },
    "diagnosis/test_equivalence.py": {
        "test_a_lumped_chain_of_any_joints_moves_like_the_original": 3,
    },
    "doctor/test_check_model.py": {
        "test_samples_have_neither_errors_nor_warnings": 3,
    },
    "documents/test_pages.py": {
        "test_code_on_the_page_runs": 6,
        "test_example_runs": 6,
    },
    "documents/test_scripts.py": {
        "test_script_runs_and_has_a_picture": 6,
    },
    "expr/test_rules.py": {
        "test_value_is_the_one_of_the_source": 6,
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
        "test_derivatives_agree_with_specialised_code": 6,
        "test_products_agree_with_specialised_code": 6,
    },
    "functional/test_differentiate.py": {
        "test_every_public_function": 5,
        "test_forward_dynamics_of_joints_with_and_without_constant_axes": 6,
        "test_inverse_dynamics_of_every_joint": 3,
    },
    "functional/test_kernel.py": {
        "test_every_public_function_works_inside_a_kernel": 6,
    },
    "functional/test_products.py": {
        "test_products_by_code_for_every_robot_are_those_of_the_derivative": 6,
    },
    "functional/test_second_derivatives.py": {
        "test_external_forces": 2,
        "test_forward_dynamics": 5,
        "test_inverse_dynamics": 5,
        "test_kinematics_energy_and_momentum": 5,
        "test_parameters_of_the_model": 3,
    },
    "hostile/test_broken_files.py": {
        "test_broken_files": 6,
    },
    "hostile/test_fuzz_recorded.py": {
        "test_meshes": 6,
        "test_motions": 3,
    },
    "hostile/test_nothing_is_lost.py": {
        "test_a_full_disk_leaves_what_was_there": 6,
    },
    "identification/test_excitation.py": {
        "test_independent_joints_of_a_linkage_move_by_the_series_and_the_others_follow": 6,
    },
    "ik/test_few_targets.py": {
        "test_few_targets_agree_with_compiled_code": 6,
    },
    "ik/test_ik_loops.py": {
        "test_poses_of_closed_configurations_are_reached_with_loops_closed": 6,
    },
    "ik/test_ik_tasks.py": {
        "test_every_kind_of_joint_takes_part": 3,
        "test_the_gradient_is_the_derivative_of_the_squared_error": 6,
    },
    "interop/test_pinocchio_models.py": {
        "test_every_kind_of_joint_keeps_its_dynamics": 3,
    },
    "joints/test_representatives.py": {
        "test_symbols_give_formulas": 3,
    },
    "joints/test_reversed.py": {
        "test_every_joint_keeps_the_contract_reversed_and_twice_reversed": 3,
    },
    "learning/test_tasks.py": {
        "test_gymnasium_finds_the_tasks": 4,
    },
    "loaders/test_fuzz_files.py": {
        "test_mutations_of_real_files": 2,
    },
    "loops/test_chart_motion.py": {
        "test_methods_keep_their_order_across_charts": 5,
    },
    "loops/test_coordinates_of_loops.py": {
        "test_a_batch_is_as_its_samples": 3,
        "test_variables_of_a_loop_joint_as_coordinates": 6,
    },
    "loops/test_five_bar_motion.py": {
        "test_configurations_that_are_not_vectors": 2,
    },
    "loops/test_implicit_steps.py": {
        "test_orders_and_convergence_on_a_curved_manifold": 6,
    },
    "loops/test_inverse_dynamics.py": {
        "test_forces_fed_back_give_the_acceleration_again": 2,
    },
    "loops/test_linearization_of_loops.py": {
        "test_equations_recursion_and_differences_agree": 6,
        "test_joints_of_every_kind": 6,
        "test_mechanisms_with_redundant_constraints": 3,
        "test_the_recursion_takes_every_sample": 3,
    },
    "loops/test_loop_joints.py": {
        "test_springs_and_dampers_of_loop_joints_balance_power": 3,
    },
    "loops/test_methods_agree.py": {
        "test_every_method_moves_random_mechanisms_alike": 6,
    },
    "loops/test_own_constraints.py": {
        "test_a_bead_on_a_rod_that_turns_flies_out": 2,
    },
    "loops/test_rank_policy.py": {
        "test_every_method_moves_a_misaligned_linkage_like_the_one_with_all_digits": 6,
    },
    "loops/test_tangent_dynamics.py": {
        "test_the_plan_and_the_general_way_agree": 6,
    },
    "model/test_gears_on_arrays.py": {
        "test_derivatives_of_accelerations": 6,
        "test_functions_agree_with_specialised_code": 6,
    },
    "model/test_general_code.py": {
        "test_both_tiers_and_single_samples_agree": 3,
        "test_derivatives_with_axes_that_move_are_general_and_compile_nothing_for_another_robot": 6,
        "test_derivatives_with_gears_call_those_of_all_joints": 6,
        "test_every_joint_on_the_base_with_armature_and_elsewhere_without": 6,
    },
    "model/test_general_random.py": {
        "test_general_code_gives_the_numbers_of_the_source": 6,
    },
    "peers/test_mujoco_constraints.py": {
        "test_acceleration_is_that_of_hard_constraints_on_mujocos_terms": 3,
    },
    "peers/test_mujoco_motion.py": {
        "test_exact_constraints_are_what_stiff_ones_of_mujoco_tend_to": 6,
        "test_motions_agree_with_those_of_mujoco": 6,
        "test_robots_move_as_in_mujoco_at_defaults": 3,
        "test_stiff_mechanisms_move_as_in_mujoco_at_defaults": 6,
    },
    "peers/test_mujoco_round_trip.py": {
        "test_attachments_come_back": 2,
        "test_mjcf_comes_back_from_mjcf": 6,
    },
    "peers/test_pinocchio_derivatives.py": {
        "test_derivatives_of_the_dynamics": 6,
        "test_products_with_external_forces": 6,
    },
    "peers/test_pinocchio_regressors.py": {
        "test_regressors": 3,
    },
    "peers/test_pinocchio_robots.py": {
        "test_robot": 6,
    },
    "peers/test_pinocchio_whole_body.py": {
        "test_center_of_mass": 2,
        "test_centroidal_momentum_and_inertia": 3,
        "test_coriolis_matrix": 2,
        "test_jacobians_their_rates_and_derivatives": 4,
        "test_velocities_and_accelerations": 6,
    },
    "peers/test_sdf_robots.py": {
        "test_urdf_and_sdf_give_the_same_robot": 3,
    },
    "peers/test_urdf_robots.py": {
        "test_robot": 6,
        "test_round_trip_keeps_the_dynamics": 6,
    },
    "peers/test_usd.py": {
        "test_every_sample_comes_back": 3,
    },
    "peers/test_written_files.py": {
        "test_written_files_load_again": 6,
    },
    "quantities/test_batches_with_loops.py": {
        "test_a_batch_gives_what_single_samples_give": 6,
    },
    "quantities/test_cartesian.py": {
        "test_a_force_has_the_power_of_its_point_and_its_torque": 3,
    },
    "quantities/test_closed_forward_dynamics.py": {
        "test_random_mechanisms": 6,
    },
    "quantities/test_dynamics.py": {
        "test_leading_axes_are_a_batch": 6,
        "test_results_have_the_precision_of_the_inputs": 6,
    },
    "quantities/test_few_samples.py": {
        "test_few_samples_agree_with_compiled_code": 6,
        "test_linear_models_agree": 2,
    },
    "quantities/test_hybrid.py": {
        "test_both_methods_equal_the_partitioned_solve_for_random_partitions": 5,
    },
    "quantities/test_inverse_maps.py": {
        "test_loops_are_honoured": 3,
    },
    "quantities/test_kinematics_for_every_robot.py": {
        "test_code_for_every_robot_gives_the_numbers_of_the_source": 6,
        "test_joint_reactions": 3,
        "test_tasks_by_articulated_bodies": 4,
    },
    "quantities/test_loops.py": {
        "test_accelerations_that_a_loop_ties_are_given_together": 3,
    },
    "quantities/test_maximal_states.py": {
        "test_every_joint_comes_back_from_the_bodies": 3,
    },
    "quantities/test_task_space.py": {
        "test_redundant_robot": 3,
        "test_square_jacobian_gives_the_formulas_of_the_textbook": 3,
    },
    "samples/test_every_sample.py": {
        "test_the_doctor_finds_nothing_wrong": 3,
    },
    "simulation/test_against_scipy.py": {
        "test_motions_end_where_those_of_scipy_end": 2,
    },
    "simulation/test_constrained_orders.py": {
        "test_projection_keeps_the_order_of_the_integrator": 6,
    },
    "simulation/test_convergence_order.py": {
        "test_dormand_and_prince_have_order_five": 4,
        "test_explicit_integrators_have_their_order": 6,
        "test_integrators_that_solve_equations_have_their_order": 6,
    },
    "simulation/test_doors.py": {
        "test_a_servo_at_its_limit_with_rigid_contact": 3,
    },
    "simulation/test_friction.py": {
        "test_two_joints_with_friction_only_lose_energy": 3,
    },
    "simulation/test_later.py": {
        "test_what_is_read_late_is_what_is_read_at_once": 2,
    },
    "simulation/test_massless_links.py": {
        "test_a_massless_link_is_carried_along": 6,
    },
    "simulation/test_on_arrays.py": {
        "test_gradients_are_differences_of_costs": 6,
        "test_gradients_of_closed_chains_are_differences_of_costs": 6,
        "test_linkages_move_as_in_compiled_steps": 6,
        "test_motions_are_those_of_compiled_steps": 5,
        "test_random_closed_chains_move_as_in_compiled_steps": 6,
        "test_random_trees_of_all_joints": 3,
    },
    "simulation/test_order_by_door.py": {
        "test_what_acts_is_of_second_order": 6,
    },
    "simulation/test_own_models.py": {
        "test_gradients_of_w_methods_agree": 6,
        "test_rollouts_and_gradients_agree_with_compiled_code": 6,
        "test_simulations_of_large_linkages_agree": 6,
    },
    "simulation/test_rollout_gradient.py": {
        "test_gradient_of_many_steps_agrees_with_complex_steps": 6,
    },
    "simulation/test_rollout_parameters.py": {
        "test_gradients_by_parameters_are_differences_of_models": 6,
        "test_parameters_move_as_the_model_that_has_them": 6,
    },
    "simulation/test_same_motion.py": {
        "test_steps_from_the_state_of_a_world_are_the_same_through_all_doors": 2,
    },
    "simulation/test_servos.py": {
        "test_every_stepper_follows_the_state": 2,
        "test_servos_on_a_loop": 6,
    },
    "simulation/test_singular_passes.py": {
        "test_passes_are_events_however_constraints_are_kept": 3,
    },
    "simulation/test_stiffness.py": {
        "test_stiff_dampers_go_with_other_options": 2,
    },
    "simulation/test_trajectory_plot.py": {
        "test_samples_can_be_drawn": 6,
    },
    "symbolic/test_equations.py": {
        "test_formulas_agree_with_compiled_functions": 3,
    },
    "symbolic/test_trigonometry.py": {
        "test_value_is_unchanged": 2,
    },
    "textbook/test_link_variations.py": {
        "test_variations_are_derivatives_of_the_chain_cut_open": 2,
    },
    "tools/test_gpu_cases.py": {
        "test_kernel_of_a_case_is_the_one_that_is_launched": 3,
    },
    "worlds/test_arm_through_every_door.py": {
        "test_an_arm_picks_up_a_box_and_holds_it": 6,
    },
    "worlds/test_contact_truth.py": {
        "test_fingers_hold_above_the_limit": 3,
        "test_plates_that_tumble_overlap_only_as_reported": 6,
        "test_random_scenes_are_not_wrong_in_silence": 6,
        "test_uneven_ground": 6,
    },
    "worlds/test_floating_loops.py": {
        "test_motions_are_those_without_contact": 6,
        "test_one_step_is_that_of_the_forward_dynamics": 6,
        "test_rows_with_bounds_beside_them_change_nothing": 3,
    },
    "worlds/test_loop_joint_rows.py": {
        "test_motions_do_not_depend_on_where_the_loop_is_cut": 2,
    },
    "worlds/test_random_worlds.py": {
        "test_impacts_in_free_space_keep_both_momenta": 3,
        "test_laws_of_random_worlds": 3,
    },
    "worlds/test_servos.py": {
        "test_what_acts_is_of_second_order": 3,
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


def values_of(request, test, parameter) -> set:
    """Values of a parameter in the cases of a test of this module that this run takes.

    What prepares cases together looks here: other modules have parameters of the same name.
    """
    return {
        item.callspec.params[parameter]
        for item in request.session.items
        if item.path == request.path and getattr(item, "originalname", "") == test
    }
