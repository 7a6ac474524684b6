"""Models as MJCF: what it holds, and what it refuses by name."""

import warnings

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded

import kinetree as kt
from kinetree.algorithms import crba, rnea
from kinetree.errors import InteropError, ModelWarning
from kinetree.interop import mujoco as M
from kinetree.loaders import load
from kinetree.model import Actuator, Coupling, JointDynamics, Posture, geometry, shapes
from kinetree.samples import random_inertia
from kinetree.writers.mjcf import to_mjcf

JOINTS = [
    kt.Revolute((1, 2, 3)),
    kt.Prismatic("-y"),
    kt.Spherical(),
    kt.Free(),
    kt.Cylindrical("x"),
    kt.Planar("y"),
    kt.Planar((1, 2, 3)),
    kt.Universal("zx"),
    kt.joints.Euler("xyz"),
    kt.joints.Euler("zxz"),
    kt.Translation(),
    kt.joints.Reversed(kt.Revolute("x")),
    kt.joints.Reversed(kt.Prismatic((1, 1, 0))),
]
PLACE = kt.xlt((0.1, 0.2, 0.3)) @ kt.rotx(0.4) @ kt.rotz(1.0)


def arm(joint, rng, **options):
    """A joint with moving bodies on both sides."""
    return (
        kt.ModelBuilder("arm")
        .body("a", joint=kt.Revolute("y"), at=PLACE, inertia=random_inertia(rng))
        .body(
            "b",
            on="a",
            joint=joint,
            at=PLACE,
            inertia=random_inertia(rng),
            joint_name="j",
            **options,
        )
        .body("c", on="b", joint=kt.Revolute((1, 0, 1)), at=PLACE, inertia=random_inertia(rng))
        .build()
    )


@pytest.mark.parametrize("joint", JOINTS, ids=repr)
def test_a_joint_moves_in_mujoco_as_here(joint, rng):
    import mujoco

    model = arm(joint, rng)
    mj_model = M.to_model(model)
    data = mujoco.MjData(mj_model)
    q, (qd, qdd) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    data.qpos, data.qvel = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
    data.qacc = M.to_a(model, mj_model, q, qd, qdd)
    mujoco.mj_inverse(mj_model, data)
    tau = rnea.inverse_dynamics(model, q, qd, qdd)
    there = M.from_tau(model, mj_model, data.qpos, data.qfrc_inverse)
    np.testing.assert_allclose(there, tau, rtol=0, atol=1e-10 * np.max(np.abs(tau)))
    np.testing.assert_allclose(M.from_q(model, mj_model, data.qpos), q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        M.from_v(model, mj_model, data.qpos, data.qvel), qd, rtol=0, atol=1e-14
    )
    back = M.from_a(model, mj_model, data.qpos, data.qvel, data.qacc)
    np.testing.assert_allclose(back, qdd, rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        M.from_tau(model, mj_model, data.qpos, M.to_tau(model, mj_model, q, tau)),
        tau,
        rtol=1e-12,
        atol=1e-12,
    )


def test_massless_chains_become_joints_of_one_body(rng):
    model = (
        kt.ModelBuilder()
        .body("a", joint=kt.Revolute("y"), at=PLACE)
        .body("b", on="a", joint=kt.Prismatic("x"), at=PLACE)
        .body("c", on="b", joint=kt.Revolute("z"), at=PLACE, inertia=random_inertia(rng))
        .build()
    )
    again = loaded(to_mjcf(model))
    assert again.joint_names == model.joint_names
    q = rng.standard_normal(3)
    H = crba.joint_space_inertia(model, q)
    np.testing.assert_allclose(crba.joint_space_inertia(again, q), H, rtol=1e-12, atol=1e-12)


def test_shapes_actuators_and_postures_come_back(tmp_path):
    mesh = tmp_path / "m.obj"
    mesh.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    forms = [
        geometry.Box((1, 2, 3)),
        geometry.Sphere(0.5),
        geometry.Cylinder(0.1, 0.2),
        geometry.Capsule(0.1, 0.2),
        geometry.Ellipsoid((1, 2, 3)),
        geometry.Mesh(str(mesh)),
    ]
    builder = kt.ModelBuilder("m").body(
        "a", joint=kt.Revolute("y"), inertia=shapes.sphere(0.1, mass=1)
    )
    for k, form in enumerate(forms):
        builder.geometry(
            form,
            on="a",
            at=PLACE,
            name=f"g{k}",
            visual=k != 1,
            collision=k != 2,
            color=(0.1, 0.2, 0.3, 0.5),
        )
    builder.geometry(geometry.Plane((4, 6)))
    model = (
        builder.actuator(
            "motor", joint="a_joint", gear=(50.0,), control=(-1, 2), effort=(-np.inf, 3)
        )
        .posture("home", q={"a_joint": 0.5}, qd={"a_joint": 2.0})
        .build()
    )
    path = tmp_path / "robot.xml"
    path.write_text(to_mjcf(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        again = load(path)
    assert again.actuators == model.actuators
    assert again.postures == model.postures
    found = {g.name: g for g in again.geometry}
    for g in model.geometry:
        other = found[g.name]
        assert (g.shape, g.visual, g.collision) == (other.shape, other.visual, other.collision)
        np.testing.assert_allclose(other.placement.r, g.placement.r, atol=1e-12)
        np.testing.assert_allclose(other.placement.E, g.placement.E, atol=1e-7)


def test_conveyors_of_meshes_and_concave_meshes_are_reported(rng):
    belt = geometry.Surface(velocity=(1.0, 0.0, 0.0))
    shapes = (geometry.Geometry(0, geometry.Mesh("part.stl", convex=False), surface=belt),)
    model = arm(kt.Revolute("y"), rng).replace(geometry=shapes)
    message = r"velocity of the surface of shape 0.*convex=False of mesh 'part.stl': MuJoCo takes"
    with pytest.warns(ModelWarning, match=message):
        to_mjcf(model)


def test_what_mjcf_cannot_hold_is_reported(rng):
    limits = kt.Limits(velocity=3.0)
    with pytest.warns(ModelWarning, match=r"not in the MJCF: velocity limits of joints 'j'"):
        to_mjcf(arm(kt.Revolute("y"), rng, limits=limits))
    model = arm(kt.Revolute("y"), rng)
    model = model.replace(geometry=(geometry.Geometry(1, geometry.Mesh("part.dae")),))
    with pytest.warns(ModelWarning, match=r"mesh 'part.dae', which MuJoCo cannot read"):
        assert "dae" not in to_mjcf(model)


def _replaced(rng, **fields):
    return arm(kt.Revolute("y"), rng).replace(**fields)


def _loop(joint):
    builder = kt.ModelBuilder().body("a", joint=kt.Revolute("y"), inertia=shapes.sphere(1, mass=1))
    return builder.loop("shut", predecessor="base", successor="a", joint=joint).build()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda rng: arm(kt.Helical("x", pitch=0.1), rng),
            r"joint 'j' is Helical.* MJCF does not have",
        ),
        (lambda rng: arm(kt.Free("child"), rng), r"joint 'j' is Free"),
        (lambda rng: arm(kt.joints.Reversed(kt.Spherical()), rng), r"joint 'j' is Reversed"),
        (lambda rng: _loop(kt.Prismatic("x")), r"loop joint 'shut' is Prismatic"),
        (
            lambda rng: _replaced(rng, couplings=(Coupling("gear", 1, 2, (0.0,) * 6),)),
            r"coupling 'gear' has degree 5",
        ),
        (
            lambda rng: arm(kt.Universal(), rng).replace(actuators=(Actuator("m", 2, (1.0, 2.0)),)),
            r"actuator 'm' has gear \[1.0, 2.0\] on joint 'j', a Universal",
        ),
        (
            lambda rng: arm(kt.Free(), rng).replace(
                actuators=(Actuator("m", 2, (0.0,) * 5 + (1.0,)),)
            ),
            r"actuator 'm' .* a Free",
        ),
        (
            lambda rng: arm(kt.Spherical(), rng, dynamics=JointDynamics(damping=(1, 2, 3))),
            r"joint 'j' has damping \[1.0, 2.0, 3.0\]; a ball joint",
        ),
        (
            lambda rng: arm(kt.Free(), rng, dynamics=JointDynamics(stiffness=(1,) * 6)),
            r"joint 'j' has stiffness .* has none",
        ),
        (
            lambda rng: arm(
                kt.Spherical(), rng, dynamics=JointDynamics(stiffness=(1,) * 3, rest=(0, 1, 0, 0))
            ),
            r"joint 'j' has a spring that is slack at \[0.0, 1.0",
        ),
        (
            lambda rng: kt.ModelBuilder().body("world", joint=kt.Revolute()).build(),
            r"body 'world': MuJoCo keeps this name",
        ),
        (
            lambda rng: kt.ModelBuilder().body("a\x01", joint=kt.Revolute()).build(),
            r"characters that XML cannot hold",
        ),
        (
            lambda rng: (
                kt.ModelBuilder()
                .body("a", joint=kt.Revolute("y"))
                .body("b", on="a", joint=kt.Revolute("z"), inertia=random_inertia(rng))
                .frame("f", on="a")
                .build()
            ),
            r"body 'a' has no mass, .* frames",
        ),
        (
            lambda rng: (
                kt.ModelBuilder()
                .body("a", joint=kt.Spherical())
                .body("b", on="a", joint=kt.Revolute("z"), inertia=random_inertia(rng))
                .build()
            ),
            r"joints 'a_joint', 'b_joint' have massless bodies between",
        ),
    ],
)
def test_errors_name_the_thing(make, message, rng):
    with pytest.raises(InteropError, match=message):
        to_mjcf(make(rng))


def test_errors_of_mujoco_become_errors_of_kinetree(tmp_path):
    mesh = tmp_path / "broken.stl"
    mesh.write_bytes(b"x" * 200)
    builder = kt.ModelBuilder("m").body(
        "a", inertia=kt.shapes.sphere(0.1, mass=1), joint=kt.Revolute("y")
    )
    model = builder.build()
    shape = kt.geometry.Geometry(1, kt.geometry.Mesh(str(mesh)))
    model = model.replace(geometry=(shape,))
    with pytest.raises(InteropError, match=r"MuJoCo rejects model 'm': .*stl"):
        M.to_model(model)


def test_what_mujoco_does_not_load_is_not_written():
    massless = kt.ModelBuilder("m").body("a", joint=kt.Revolute("y")).build()
    with pytest.raises(InteropError, match="body 'a' moves and has no mass, which MuJoCo"):
        to_mjcf(massless)
    data = kt.samples.pendulum().to_dict()
    data["bodies"][0]["inertia"]["rotational"] = np.diag([5.0, 1.0, 1.0]).tolist()
    data["bodies"][0]["inertia"]["first_moment"] = [0, 0, 0]
    with pytest.raises(kt.ModelError, match="physically impossible"):
        kt.Model.from_dict(data)
    with pytest.warns(kt.ModelWarning, match="physically impossible"):
        model = kt.Model.from_dict(data, strict=False)
    with pytest.raises(
        InteropError, match=r"principal moments .* MuJoCo does not load such a body"
    ):
        to_mjcf(model)


def test_another_order_of_joints_is_said(rng):
    solid = kt.shapes.sphere(0.1, mass=1)
    builder = kt.ModelBuilder("m")
    for name, parent in (("a", None), ("b", None), ("c", "a")):
        builder = builder.body(name, inertia=solid, joint=kt.Revolute("y"), on=parent)
    with pytest.warns(
        kt.ModelWarning, match="joints in another order, depth first .*: a.*, c.*, b"
    ):
        to_mjcf(builder.build())


def test_formulas_are_rejected():
    from fractions import Fraction

    model = kt.samples.double_pendulum().map_numbers(Fraction)
    with pytest.raises(InteropError, match=r"MJCF holds numbers, and model .* formulas"):
        to_mjcf(model)


def test_a_posture_of_a_planar_joint_comes_back(rng):
    model = arm(kt.Planar("y"), rng)
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    model = model.replace(postures=(Posture("p", tuple(q), tuple(qd)),))
    mj_model = M.to_model(model)
    np.testing.assert_allclose(M.to_q(model, mj_model, q), mj_model.key_qpos[0], atol=1e-15)
    np.testing.assert_allclose(M.to_v(model, mj_model, q, qd), mj_model.key_qvel[0], atol=1e-15)


@pytest.mark.parametrize("path", ["package://nowhere/part.stl", "/nowhere/part.stl"])
def test_meshes_whose_files_are_not_there_are_left_out(path, tmp_path):
    """MuJoCo would not load the file, and neither would ``kt.load``."""
    mesh = geometry.Geometry(1, geometry.Mesh(path))
    model = kt.samples.double_pendulum().replace(geometry=(mesh,))
    with pytest.warns(ModelWarning) as caught:
        kt.save(model, tmp_path / "r.xml")
    assert any("part.stl', whose file was not found" in str(w.message) for w in caught)
    assert kt.load(tmp_path / "r.xml").nv == model.nv
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml")).nv == model.nv
