"""Kinematics, momenta and energies by code for every robot: the numbers of the plain text."""

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree import joints
from kinetree.algorithms import jacobians
from kinetree.model.define import DEFINITIONS
from kinetree.samples.random_mechanisms import random_placement, random_tree

JOINTS = [
    joints.Revolute("x"), joints.Prismatic((1.0, 2.0, -2.0)), joints.Spherical(),
    joints.Universal(),
]  # fmt: skip

FUNCTIONS = (
    "integrate", "difference", "configuration_rate", "normalize", "kinetic_energy",
    "potential_energy", "kinetic_energy_rate", "potential_energy_rate", "generalized_momentum",
    "generalized_force", "passive_force", "poses", "center_of_mass", "center_of_mass_velocity",
    "center_of_mass_acceleration", "center_of_mass_jacobian", "center_of_mass_jacobian_rate",
    "momentum", "centroidal_momentum", "centroidal_momentum_rate", "centroidal_momentum_bias",
    "centroidal_momentum_matrix", "centroidal_momentum_matrix_rate", "centroidal_inertia",
    "zero_moment_point", "pose", "jacobian", "jacobians", "jacobian_rate", "hessian", "velocity",
    "acceleration", "bias_acceleration",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _general():
    with kt.tier("general"):
        yield


def robot(seed, count=6):
    """A tree with a floating base, armature, springs, dampers, friction, and two frames."""
    model, rng = (
        random_tree(count, seed, joints=JOINTS, floating_base=True),
        np.random.default_rng(seed),
    )
    dynamics = kt.JointDynamics(armature=0.2, stiffness=3.0, rest=(0.1,), damping=0.4, friction=0.5)
    bodies = [replace(b, dynamics=dynamics) if b.joint.nv == 1 else b for b in model.bodies]
    frames = [
        kt.Frame("tip", count, random_placement(rng)),
        kt.Frame("mark", 0, random_placement(rng)),
    ]
    return model.replace(bodies=bodies, frames=frames)


ROBOT = robot(3)


def arrays_of(model, names, batch, rng):
    sizes = {"f_ext": (model.body_count, 6), "point": (3,)}
    return [
        model.random_configuration(rng, batch) if name in ("q", "q0", "q1")
        else rng.standard_normal((batch, *sizes.get(name, (model.nv,))))
        for name in names
    ]  # fmt: skip


def options_of(defined):
    """Frames of bodies and of the base, in all coordinates."""
    found = [{"name": name} for name in ("tip", "mark")] if "name" in defined.options else [{}]
    if "frame" in defined.options:
        found = [{**o, "frame": f} for o in found for f in ("world", "body", "aligned")]
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_code_for_every_robot_gives_the_numbers_of_the_source(name, rng):
    defined = DEFINITIONS[name]
    for options in options_of(defined):
        of_point = "point" in defined.optional and options["frame"] == "aligned"
        kernel = defined.kernel(ROBOT, ("point",) if of_point else (), **options)
        arrays = arrays_of(ROBOT, [i.name for i in kernel.inputs], 3, rng)
        found = kernel.call(*arrays)
        assert kernel.tier == "general"
        single = [kernel.call(*(a[k] for a in arrays)) for k in range(3)]
        np.testing.assert_array_equal(found, single)
        expected = np.array([kernel.reference([a[k] for a in arrays]) for k in range(3)], float)
        size = np.max(np.abs(expected), initial=1e-3)
        np.testing.assert_allclose(found, expected, 0, 1e-13 * size)


# --- names and parameters are data ----------------------------------------------------------------


def test_another_frame_or_robot_compiles_nothing(compilations, rng):
    q = ROBOT.random_configuration(rng)
    kt.jacobian(ROBOT, q, "tip", frame="aligned")
    before = compilations()
    other = ROBOT.replace(frames=[kt.Frame("hand", 3, random_placement(rng))], gravity=(0, 0, -1.6))
    calls = ((ROBOT, ROBOT.body_names[2]), (other, "hand"))
    found = [kt.jacobian(model, q, name, frame="aligned") for model, name in calls]
    assert compilations() == before
    for (model, name), J in zip(calls, found, strict=True):
        expected = jacobians.frame_jacobian(model, q, model.frame(name), "aligned")
        np.testing.assert_allclose(J, expected, 0, 1e-13 * np.max(np.abs(expected)))


def test_other_springs_compile_nothing(compilations, rng):
    q, qd = ROBOT.random_configuration(rng), rng.standard_normal(ROBOT.nv)
    before = kt.passive_force(ROBOT, q, qd)
    count = compilations()
    stiff = [
        replace(b, dynamics=replace(b.dynamics, stiffness=(6.0,))) if b.joint.nv == 1 else b
        for b in ROBOT.bodies
    ]
    found = kt.passive_force(ROBOT.replace(bodies=stiff), q, qd)
    assert compilations() == count
    assert not np.allclose(found, before)


# --- what it does not serve -----------------------------------------------------------------------


def test_motions_against_other_frames_have_code_for_one_robot(rng):
    q = ROBOT.random_configuration(rng)
    kernel = DEFINITIONS["pose"].kernel(ROBOT, name="tip", relative_to=ROBOT.body_names[2])
    found = kernel.call(q)
    assert kernel.tier == "specialised"
    expected = np.linalg.inv(kt.pose(ROBOT, q, ROBOT.body_names[2])) @ kt.pose(ROBOT, q, "tip")
    np.testing.assert_allclose(found, expected, 0, 1e-12)


def test_masses_far_from_a_base_without_mass(rng):
    """Sliders without mass are far away; of those with mass no digit is lost on the way."""
    builder = kt.ModelBuilder("gantry")
    for k, axis in enumerate("xyz"):
        builder.body(f"s{k}", on=f"s{k - 1}" if k else None, joint=joints.Prismatic(axis))
    builder.body(
        "load", on="s2", joint=joints.Spherical(), inertia=kt.shapes.box(1, 2, 3, mass=2.0)
    )
    model = builder.build()
    q = model.neutral()
    near, far = (kt.centroidal_inertia(model, q + np.array([d] * 3 + [0] * 4)) for d in (0, 1e8))
    assert DEFINITIONS["centroidal_inertia"].kernel(model).tier == "specialised"
    np.testing.assert_allclose(far, near, 0, 1e-14 * np.max(np.abs(near)))


def test_centroidal_quantities_lose_no_digits_far_from_the_origin():
    model = kt.samples.quadruped()
    q = model.neutral()
    moved = q.copy()
    moved[:3] += 2.0**40
    near, far = kt.centroidal_inertia(model, q), kt.centroidal_inertia(model, moved)
    assert DEFINITIONS["centroidal_inertia"].kernel(model).tier == "general"
    np.testing.assert_allclose(far, near, 0, 1e-14 * np.max(np.abs(near)))


@pytest.mark.parametrize(
    ("given", "part", "frame"),
    [("qdd", "total", "joint"), ("qdd", "bearing", "world"), ("tau", "drive", "predecessor")],
)
def test_joint_reactions(given, part, frame, rng):
    names = ("q", "qd", given, "f_ext")
    arrays = dict(zip(names, arrays_of(ROBOT, names, 2, rng), strict=True))
    found = kt.joint_reactions(ROBOT, **arrays, part=part, frame=frame)
    options = {"part": part, "frame": frame, "joint": None}
    kernel = DEFINITIONS["joint_reactions"].kernel(ROBOT, (given, "f_ext"), **options)
    assert kernel.tier == "general"
    expected = np.array([kernel.reference([a[k] for a in arrays.values()]) for k in range(2)])
    np.testing.assert_allclose(found, expected, 0, 1e-12 * np.max(np.abs(expected)))


# --- tasks ----------------------------------------------------------------------------------------

TASKS = (
    "operational_space_inertia", "inverse_operational_space_inertia", "operational_space_bias",
    "operational_space_gravity", "dynamically_consistent_inverse", "null_space_projector",
    "task_space_inverse_dynamics", "task_space_forward_dynamics",
)  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(("frame", "extra"), [("world", ()), ("aligned", ("point", "damping"))])
def test_tasks_by_articulated_bodies(name, frame, extra, rng):
    """Against the inertia matrix and its factors."""
    defined, rows = DEFINITIONS[name], ("x", "z", "ry")
    extra = tuple(n for n in extra if n in defined.optional)
    kernel = defined.kernel(ROBOT, extra, name="tip", frame=frame, rows=rows)
    arrays = arrays_of(ROBOT, [i.name for i in kernel.inputs], 2, rng)
    arrays = [
        np.abs(a[:, 0]) if i.name == "damping" else a[:, : i.shape[0]]
        for a, i in zip(arrays, kernel.inputs, strict=True)
    ]
    found = kernel.call(*arrays)
    assert kernel.tier == "general"
    expected = np.array([kernel.reference([a[k] for a in arrays]) for k in range(2)], float)
    np.testing.assert_allclose(found, expected, 0, 1e-11 * np.max(np.abs(expected)))


def test_a_task_that_is_not_free_has_no_inertia():
    model = kt.samples.panda()
    q, name = model.neutral(), model.body_names[2]  # two joints move it
    with pytest.raises(kt.errors.SingularError, match="rank 2"):
        kt.operational_space_inertia(model, q, name)
    kernel = DEFINITIONS["operational_space_inertia"].kernel(model, name=name)
    assert kernel.tier == "general"
