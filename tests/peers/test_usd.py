"""USD: round trips of every sample; a file of a stranger; USD's own reader of what is written."""

import random
import re
import warnings

import numpy as np
import pytest
from support.closeness import assert_close
from support.quiet import without_warnings

import kinetree as kt
from kinetree.algorithms import crba
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import InteropError, LoadError, ModelWarning
from kinetree.joints import Helical, Revolute
from kinetree.model import ModelBuilder
from kinetree.writers.usd import to_usd

pytest.importorskip("pxr")

from pxr import Usd, UsdGeom, UsdPhysics

SAMPLES = kt.samples.names()
BALL = kt.shapes.sphere(0.1, mass=2.0)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_comes_back(name, rng):
    model = getattr(kt.samples, name)()
    again = kt.loads(without_warnings(to_usd, model), lump=False)
    assert again.body_names == model.body_names
    assert again.joint_names == model.joint_names
    assert sorted(again.frame_names) == sorted(model.frame_names)
    by_body = sorted(model.geometry, key=lambda g: g.body)
    assert [type(g.shape) for g in again.geometry] == [type(g.shape) for g in by_body]
    assert len(again.loops) == len(model.loops)
    q = model.random_configuration(rng)
    H = crba.joint_space_inertia(model, q)
    assert_close(crba.joint_space_inertia(again, q), H, ulps=2000)
    ours, theirs = (base_transforms(m, joint_transforms(m, q)[0]) for m in (model, again))
    for X, Y in zip(ours, theirs, strict=True):
        assert_close(Y.E, X.E, ulps=2000)
        assert_close(Y.r, X.r, ulps=2000)
    for a, b in zip(again.geometry, by_body, strict=True):
        assert (a.body, a.name, a.collision, a.visual) == (b.body, b.name, b.collision, b.visual)
        np.testing.assert_allclose(a.shape.half_extents, b.shape.half_extents, rtol=1e-12)
        np.testing.assert_allclose(a.placement.r, b.placement.r, atol=1e-12)
    for kind in ("lower", "upper"):
        x, y = (getattr(m.position_limits, kind) for m in (again, model))
        np.testing.assert_allclose(x, y, rtol=1e-12)
    np.testing.assert_allclose(again.effort_limits, model.effort_limits, rtol=1e-12)
    assert {a.name: a.gain for a in again.actuators} == {
        a.name: a.gain for a in model.actuators if a.name in {b.name for b in again.actuators}
    }


@pytest.mark.parametrize("name", ["arm", "humanoid", "four_bar", "stewart"])
def test_both_frames_of_a_joint_coincide_for_usd(name):
    """What USD's own reader finds, in the posture of the file: an independent check of places."""
    model = getattr(kt.samples, name)()
    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().ImportFromString(without_warnings(to_usd, model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the newest version
        found = UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"])
    joints = [d for paths, ds in found.values() for d in ds if hasattr(d, "localPose0Position")]
    assert len(joints) == sum(p.IsA(UsdPhysics.Joint) for p in stage.Traverse()) > 0
    loops = {re.sub(r"\W", "_", loop.name) for loop in model.loops}
    cache = UsdGeom.XformCache()
    for joint in joints:
        points = []
        for k in (0, 1):
            path = getattr(joint, f"body{k}")
            prim = stage.GetPrimAtPath(path) if path else stage.GetPseudoRoot()
            points.append(
                cache.GetLocalToWorldTransform(prim).Transform(
                    getattr(joint, f"localPose{k}Position")
                )
            )
        if joint.primPath.name not in loops:  # which are open in the neutral posture
            np.testing.assert_allclose(points[0], points[1], atol=1e-6)


STRANGER = """#usda 1.0
(
    defaultPrim = "robot"
    metersPerUnit = 0.01
    upAxis = "Y"
)
def PhysicsScene "scene" { }
def Xform "robot" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])
{
    double3 xformOp:translate = (0, 100, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Cube "foot" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        double size = 20
    }
    def Xform "upper" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 2
        point3f physics:centerOfMass = (0, 25, 0)
        float3 physics:diagonalInertia = (100, 10, 200)
        def Capsule "rod" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            uniform token axis = "Y"
            double height = 40
            double radius = 3
            double3 xformOp:translate = (0, 25, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }
        def Xform "fore" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
        {
            double3 xformOp:translate = (0, 50, 0)
            double3 xformOp:scale = (1, 2, 1)
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
            def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"])
            {
                double size = 10
                float physics:density = 0.002
            }
        }
    }
    def PhysicsRevoluteJoint "shoulder" (
        prepend apiSchemas = ["PhysicsDriveAPI:angular", "PhysxJointAPI"]
    )
    {
        uniform token physics:axis = "X"
        rel physics:body1 = </robot/upper>
        point3f physics:localPos0 = (0, 100, 0)
        quatf physics:localRot0 = (0.70710678, 0, 0.70710678, 0)
        quatf physics:localRot1 = (0.70710678, 0, 0.70710678, 0)
        float physics:lowerLimit = -90
        float physics:upperLimit = 45
        float drive:angular:physics:stiffness = 10
        float drive:angular:physics:damping = 0.5
        float drive:angular:physics:maxForce = 30
        float physxJoint:maxJointVelocity = 180
        float physxJoint:armature = 0.25
    }
    def PhysicsPrismaticJoint "slide"
    {
        uniform token physics:axis = "Y"
        rel physics:body0 = </robot/upper>
        rel physics:body1 = </robot/upper/fore>
        point3f physics:localPos0 = (0, 50, 0)
        point3f physics:localPos1 = (0, 5, 0)
        float physics:lowerLimit = 0
        float physics:upperLimit = 20
    }
    def PhysicsDistanceJoint "rope"
    {
        rel physics:body1 = </robot/upper/fore>
    }
}
"""


SHEET = """#usda 1.0
(
    defaultPrim = "robot"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "robot"
{
    def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
    {
        def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"])
        {
            double size = 0.2
            float physics:density = 500
        }
        def Mesh "sheet" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
            int[] faceVertexCounts = [3, 3]
            int[] faceVertexIndices = [0, 1, 2, 1, 3, 2]
        }
    }
    def PhysicsRevoluteJoint "shoulder"
    {
        uniform token physics:axis = "X"
        rel physics:body1 = </robot/arm>
    }
}
"""


def test_a_shape_without_inertia_is_a_notice():
    """A flat mesh beside a cube of 500 kg/m³, whose mass the body has."""
    with pytest.warns(ModelWarning, match=r"inertia of 'arm' is without this shape: .* it is flat"):
        m = kt.loads(SHEET)
    assert m.inertia[1].mass == pytest.approx(4.0)


def test_a_file_of_a_stranger():
    """Centimetres, degrees, nested bodies with a scale, density, drives, by hand."""
    with pytest.warns(ModelWarning, match="kinetree has no joint like a PhysicsDistanceJoint"):
        m = kt.loads(STRANGER)
    assert m.body_names == ("world", "upper", "fore")
    np.testing.assert_allclose(m.gravity, [0, -9.81, 0], atol=1e-15)
    np.testing.assert_allclose(m.joint[1].axis, [0, 0, -1], atol=1e-7)  # x, turned about y
    np.testing.assert_allclose(kt.pose(m, [0, 0], "upper")[:3, 3], [0, 1, 0], atol=1e-7)
    # In the file it is at 0.5 m; the joint keeps a point 0.1 m up on it (scaled) at 0.5 m.
    np.testing.assert_allclose(kt.pose(m, [0, 0], "fore")[:3, 3], [0, 1.5, 0], atol=1e-7)
    np.testing.assert_allclose(kt.pose(m, [0, 0], "fore_link")[:3, 3], [0, 1.4, 0], atol=1e-7)
    np.testing.assert_allclose(m.position_limits.upper, [np.pi / 4, 0.2], rtol=1e-6)
    np.testing.assert_allclose(m.velocity_limits, [np.pi, np.inf], rtol=1e-6)
    np.testing.assert_allclose(m.bodies[0].dynamics.armature, [0.25])
    (servo,) = m.actuators
    unit = 180 / np.pi
    np.testing.assert_allclose(servo.gain[0], 10 * unit, rtol=1e-6)
    np.testing.assert_allclose(servo.bias[2], -0.5 * unit, rtol=1e-6)
    assert servo.effort == (-30, 30)
    upper, fore = m.inertia[1:]
    np.testing.assert_allclose(upper.center_of_mass, [0, 0.25, 0], atol=1e-9)
    np.testing.assert_allclose(np.diag(upper.rotational_at_center), [0.01, 0.001, 0.02], atol=1e-9)
    mass = 0.1 * 0.2 * 0.1 * 2000  # 0.002 kg/cm³
    np.testing.assert_allclose(fore.mass, mass, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(m.geometry[2].shape.size), [0.1, 0.2, 0.1])
    rod = m.geometry[1]
    np.testing.assert_allclose(rod.placement.E[2], [0, 1, 0], atol=1e-12)
    assert (rod.shape.radius, rod.shape.length) == pytest.approx((0.03, 0.4))


def test_numbers_that_were_changed_in_another_program_count():
    text = without_warnings(
        to_usd, ModelBuilder().body("a", joint=Revolute("z"), inertia=BALL * 0.6).build()
    )
    assert "float physics:mass = 1.2\n" in text
    assert kt.loads(text).inertia[1].mass == BALL.mass * 0.6  # in double precision
    changed = text.replace("float physics:mass = 1.2\n", "float physics:mass = 5\n")
    assert kt.loads(changed).inertia[1].mass == 5.0


def test_axes_anywhere_and_surfaces_come_back(rng):
    axis = rng.standard_normal(3)
    b = ModelBuilder("odd one").body("a b", joint=Revolute(axis), inertia=BALL, at=(1, 2, 3))
    b.body("c", on="a b", joint=kt.Prismatic(-axis), inertia=BALL, joint_name="a-b")
    surface = kt.geometry.Surface(friction=0.3, restitution=0.1)
    b.geometry(kt.geometry.Ellipsoid((0.1, 0.2, 0.3)), on="c", name="egg", surface=surface)
    b.geometry(kt.geometry.Plane(), name="floor").exclude("egg", "a b")
    model = b.build()
    again = kt.loads(without_warnings(to_usd, model))
    assert (again.name, again.body_names) == ("odd one", model.body_names)
    assert again.joint_names == model.joint_names
    q = [0.3, 0.4]
    np.testing.assert_allclose(kt.pose(again, q, "c"), kt.pose(model, q, "c"), atol=1e-14)
    np.testing.assert_allclose(kt.mass_matrix(again, q), kt.mass_matrix(model, q), atol=1e-14)
    egg = next(g for g in again.geometry if g.name == "egg")
    assert egg.surface == surface
    np.testing.assert_allclose(egg.shape.radii, (0.1, 0.2, 0.3))
    (pair,) = again.contact_pairs
    assert ({pair.first, pair.second}, pair.touch) == ({"egg", "a b"}, False)


def test_meshes_keep_their_triangles(tmp_path):
    (tmp_path / "t.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    b = ModelBuilder().body("a", joint=Revolute("z"), inertia=BALL)
    b.geometry(kt.geometry.Mesh(str(tmp_path / "t.obj"), scale=(2, 2, 2)), on="a")
    file = kt.save(b.build(), tmp_path / "m.usda")
    shape = kt.load(file).geometry[0].shape
    assert shape.convex
    bounds = kt.loaders.meshes.mesh_bounds(shape.path)
    np.testing.assert_allclose(bounds, [[0, 0, 0], [2, 2, 2]])


def test_crates_and_archives_are_read(tmp_path):
    model = kt.samples.pendulum()
    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().ImportFromString(without_warnings(to_usd, model))
    stage.GetRootLayer().Export(str(tmp_path / "p.usdc"))
    from pxr import UsdUtils

    UsdUtils.CreateNewUsdzPackage(str(tmp_path / "p.usdc"), str(tmp_path / "p.usdz"))
    for suffix in ("usdc", "usdz"):
        again = kt.load(tmp_path / f"p.{suffix}")
        assert kt.mass_matrix(again, [0.1]) == pytest.approx(kt.mass_matrix(model, [0.1]))
    crate = kt.loads((tmp_path / "p.usdc").read_bytes())
    assert crate.body_names == model.body_names


def test_other_files_must_lie_in_allowed_folders(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "mine").mkdir()
    model = ModelBuilder("part").body("a", joint=Revolute("z"), inertia=BALL).build()
    kt.save(model, tmp_path / "parts" / "part.usda")
    file = tmp_path / "mine" / "robot.usda"
    file.write_text(
        '#usda 1.0\n(\n    defaultPrim = "robot"\n)\n'
        'def "robot" (\n    references = @../parts/part.usda@\n)\n{\n}\n'
    )
    with pytest.raises(LoadError, match=r"lies outside the folders .* pass folders="):
        kt.load(file)
    assert kt.load(file, folders=[tmp_path / "parts"]).body_names == ("base", "a")


@pytest.mark.parametrize(
    ("joint", "text"),
    [(Helical("z", pitch=0.1), "joint 'a_joint' is Helical.*USD cannot express")],
)
def test_what_usd_has_no_word_for(joint, text):
    model = ModelBuilder().body("a", joint=joint, inertia=BALL).build()
    with pytest.raises(InteropError, match=text):
        to_usd(model)


def test_couplings_and_the_rest_are_named():
    b = ModelBuilder().body("a", joint=Revolute("z"), inertia=BALL)
    b.body("b", on="a", joint=Revolute("z"), inertia=BALL)
    b.tendon("string", joints={"a_joint": 1.0})
    with pytest.warns(ModelWarning, match="not in the USD: 1 tendons"):
        to_usd(b.build())
    b.coupling("belt", joint="b_joint", source="a_joint")
    with pytest.raises(InteropError, match="no coupling of joints such as 'belt'"):
        to_usd(b.build())


def test_broken_files_end_in_our_errors():
    text, rng = without_warnings(to_usd, kt.samples.four_bar()), random.Random(1)
    lines = text.splitlines()
    said = []
    for _ in range(25):
        k = rng.randrange(1, len(lines))
        hurt = lines[k].replace(*rng.choice([("0", "nan"), ("(", "["), ("1", "-1e300"), ("a", "")]))
        broken = "\n".join([*lines[:k], hurt, *lines[k + rng.randrange(2) :]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                kt.loads(broken, "usd")
            except LoadError as error:
                said.append(str(error))
    assert len(said) > 3
    assert all("<text>" in text for text in said)
