"""Joint reactions against statics, the maximal-coordinate solver and balances of force."""

import warnings

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import geared_robot, with_armature
from support.states import conditioning

import kinetree as kt
from kinetree.algorithms import reactions as texts
from kinetree.algorithms.closed import maximal
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import IndeterminateWarning, ModelError, ShapeError, UnknownNameError
from kinetree.joints import (
    REPRESENTATIVES,
    Fixed,
    Free,
    Revolute,
    SphereInCylinder,
    active_subspace_from_wrench,
)
from kinetree.model import JointDynamics, ModelBuilder
from kinetree.samples import random_inertia, random_placement, random_tree
from kinetree.samples.random_mechanisms import closed_loop
from kinetree.spatial import Force

PARTS = ("total", "bearing", "drive")


def cantilever(joint=None, **dynamics):
    """A beam of 2 m and 3 kg along x, held at its left end, with a load at its tip."""
    beam = kt.shapes.rod(2.0, mass=3.0, at=(1.0, 0, 0), axis="x")
    builder = ModelBuilder("cantilever").body(
        "beam", joint=joint or Fixed(), inertia=beam, joint_name="wall", at=(0, 0, 0.5),
        dynamics=JointDynamics(**dynamics) if dynamics else None,
    )  # fmt: skip
    return builder.frame("tip", on="beam", at=(2.0, 0, 0)).build()


@pytest.mark.covers("RBDA 5.3", "Lynch & Park 9.3", by=texts.joint_reactions)
def test_reaction_of_a_static_cantilever():
    model, none = cantilever(), np.zeros(0)
    tip = np.array([0.0, 0, 0, 0, 0, -10.0])
    load = kt.applied_force(model, none, "tip", force=tip[3:], frame="aligned")
    g = 9.81
    found = kt.joint_reactions(model, none, none, none, f_ext={"beam": load}, joint="wall")
    # the wall carries both weights, and their moments about its edge
    assert_close(found, [0, -(3 * g * 1.0 + 10 * 2.0), 0, 0, 0, 3 * g + 10], ulps=10)
    at_tip = kt.joint_reactions(model, none, none, none, f_ext={"beam": load}, frame="tip")
    assert_close(at_tip[0], [0, 3 * g * 1.0, 0, 0, 0, 3 * g + 10], ulps=20)
    world = kt.joint_reactions(model, none, none, none, f_ext={"beam": load}, frame="world")
    assert_close(world[0], found, ulps=10)  # a vertical force half a metre above the origin


def test_the_bearing_of_a_hinge_carries_what_its_motor_does_not():
    model, state = cantilever(Revolute("y")), (np.zeros(1), np.zeros(1), np.zeros(1))
    weight = 3 * 9.81
    total, bearing, drive = (kt.joint_reactions(model, *state, part=p)[0] for p in PARTS)
    assert_close(total, [0, -weight, 0, 0, 0, weight], ulps=10)
    assert_close(bearing, [0, 0, 0, 0, 0, weight], ulps=10)
    assert_close(drive, [0, -weight, 0, 0, 0, 0], ulps=10)


def test_hinge_of_a_swinging_rod_at_its_lowest_point():
    """The bearing carries the weight and the centripetal force m w² l/2."""
    rod = kt.shapes.rod(1.0, mass=2.0, at=(0, 0, -0.5))
    model = ModelBuilder("rod").body("rod", joint=Revolute("y"), inertia=rod).build()
    w = 3.0
    found = kt.joint_reactions(model, [0.0], [w], tau=[0.0], joint="rod_joint")
    assert_close(found, [0, 0, 0, 0, 0, 2 * 9.81 + 2 * w**2 * 0.5], ulps=20)


@pytest.mark.covers("RBDA Example 3.2", "RBDA 3.5", by=active_subspace_from_wrench)
def test_gear_tooth_force_loads_the_bearing():
    """A pinion that pushes at (-r, 0, 0) along y: T_a = (0, 0, 1, 0, -1/r, 0)."""
    r, torque = 0.05, 6.0
    disk = kt.shapes.cylinder(r, 0.02, mass=0.4)
    parts = {}
    for side in ("active_predecessor", "active_successor"):
        tooth = JointDynamics(**{side: (0, 0, -r, 0, 1, 0)})
        model = ModelBuilder("gear").body("gear", joint=Revolute("z"), inertia=disk).build()
        model = model.replace(gravity=(0, 0, 0), dynamics={"gear_joint": tooth})
        body = model.bodies[0]
        assert_close(body.active_subspace(np.zeros(1)).to_array()[:, 0], [0, 0, 1, 0, -1 / r, 0])
        q = np.array([[0.0], [0.7]])
        of = {p: kt.joint_reactions(model, q, [0.0], tau=[torque], part=p)[:, 0] for p in PARTS}
        assert_close(of["total"], np.tile([0, 0, torque, 0, 0, 0], (2, 1)), ulps=20)
        assert_close(of["drive"][0], [0, 0, torque, 0, -torque / r, 0], ulps=20)
        assert_close(of["bearing"][0], [0, 0, 0, 0, torque / r, 0], ulps=20)  # against the tooth
        parts[side] = of["bearing"][1]
        assert_close(kt.forward_dynamics(model, [0.0], [0.0], [torque]),
                     kt.forward_dynamics(model.replace(dynamics={"gear_joint": None}), [0.0],
                                         [0.0], [torque]))  # fmt: skip
    c, s = np.cos(0.7), np.sin(0.7)
    # a pinion on the housing stays where it is, one on the gear turns with it
    assert_close(parts["active_predecessor"], torque / r * np.array([0, 0, 0, s, c, 0]), ulps=20)
    assert_close(parts["active_successor"], torque / r * np.array([0, 0, 0, 0, 1, 0]), ulps=20)


@pytest.mark.parametrize(
    "joint", [j for j in REPRESENTATIVES if j.nv], ids=lambda j: type(j).__name__
)
def test_any_drive_on_any_joint_does_unit_work_and_changes_no_motion(joint, rng):
    side = ("active_predecessor", "active_successor")[int(rng.integers(2))]
    drive = JointDynamics(**{side: rng.standard_normal(6 * joint.nv)})
    model = (
        ModelBuilder("one")
        .body("a", joint=Revolute("x"), inertia=random_inertia(rng))
        .body("b", on="a", joint=joint, at=random_placement(rng), inertia=random_inertia(rng))
        .build()
    )
    driven = model.replace(dynamics={"b_joint": drive})
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    T_a = driven.bodies[1].active_subspace(q[1:])
    S, condition = joint.motion_subspace(q[1:]), np.max(np.abs(T_a.to_array()))
    assert_close(T_a.T @ S, np.eye(joint.nv), ulps=1e3, condition=condition)
    f, g = (kt.joint_reactions(m, q, qd, tau=tau) for m in (model, driven))
    assert_close(f, g, ulps=10)
    f_c, f_J = (kt.joint_reactions(driven, q, qd, tau=tau, part=p)[1] for p in ("bearing", "total"))
    scale = np.max(np.abs(f_J)) * condition
    assert_close(S.T @ Force.from_array(f_c), np.zeros(joint.nv), ulps=1e3, scale=scale)
    found = maximal.solution(driven, q, qd, tau)
    X_0 = kt.algorithms.kinematics.base_transforms(
        model, kt.algorithms.kinematics.joint_transforms(model, q)[0]
    )
    expected = (X_0[2].star @ found.f_c[2]).to_array()
    assert_close(f_c, expected, ulps=1e4, scale=scale, condition=conditioning(model, q))


def test_drives_that_cannot_be_are_rejected():
    with pytest.raises(ModelError, match=r"'wall': .*does no work on the freedom of this Revolute"):
        cantilever(Revolute("y"), active_predecessor=(1, 0, 0, 0, 0, 0))
    with pytest.raises(ModelError, match="active_successor needs 6 entries, got 3"):
        cantilever(Revolute("y"), active_successor=(1, 0, 0))
    wrench = (0, 1, 0, 0, 0, 0)
    with pytest.raises(ModelError, match="mounted on the predecessor or on the successor"):
        cantilever(Revolute("y"), active_successor=wrench, active_predecessor=wrench)


def test_drives_survive_files_and_fingerprints(tmp_path):
    wrench = (0, 0.1, 0, 0, 0, 1)
    one = cantilever(Revolute("y"), active_predecessor=wrench)
    other = cantilever(Revolute("y"), active_successor=wrench)
    assert len({one.fingerprint, other.fingerprint, cantilever(Revolute("y")).fingerprint}) == 3
    for suffix in ("json", "toml", "urdf"):
        path = tmp_path / f"beam.{suffix}"
        kt.save(one, path)
        assert kt.load(path).bodies[-1].dynamics.active_predecessor == wrench
    assert "drives with their own wrenches in wall" in one.summary()
    with pytest.warns(
        kt.ModelWarning, match="not in the MJCF: where drives push, of joints 'wall'"
    ):
        kt.save(one, tmp_path / "beam.xml")


def test_a_drive_stays_on_its_body_when_the_joint_is_turned_round():
    """The same linkage, described from either end of its joint: one T_a, seen from both sides."""
    rod, q = kt.shapes.rod(1.0, mass=1.0, at=(0.5, 0, 0), axis="x"), np.array([0.4])
    loads = []
    for bodies in (("a", "b"), ("b", "a")):
        graph = kt.model.MechanismGraph("two").body("a", inertia=rod).body("b", inertia=rod)
        graph.joint("fixed", Fixed(), predecessor="base", successor=bodies[0])
        graph.joint(
            "hinge", Revolute("z"), predecessor="a", successor="b",
            dynamics=JointDynamics(active_predecessor=(0, 0, 0.1, 1, 0, 0)),
        )  # fmt: skip
        model = graph.to_model()
        loads.append(model.bodies[1].active_subspace(q).to_array()[:, 0])
    forward, turned = loads
    c, s = 10 * np.cos(q[0]), 10 * np.sin(q[0])
    assert_close(forward, [0, 0, 1, c, -s, 0], ulps=20)  # on b, in its frame
    assert_close(turned, [0, 0, -1, -10, 0, 0], ulps=20)  # on a, in the frame where the drive is


@pytest.mark.parametrize("seed", range(2))
def test_trees_balance_body_by_body(seed):
    """Newton and Euler for each body: the forces of its joints make its momentum change."""
    rng = np.random.default_rng(seed)
    model = with_armature(random_tree(5, rng=rng, joints=REPRESENTATIVES), rng)
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    f_ext = rng.standard_normal((model.body_count, 6))
    found = maximal.solution(model, q, qd, tau, [None, *map(Force.from_array, f_ext)])
    condition = conditioning(model, q)
    size = max(np.max(np.abs(f.to_array())) for f in found.f_J[1:])
    for part, expected in (("total", found.f_J), ("bearing", found.f_c)):
        f = kt.joint_reactions(model, q, qd, tau=tau, f_ext=f_ext, part=part, frame="world")
        expected = np.array([x.to_array() for x in expected[1:]])
        assert_close(f, expected, ulps=1e4, scale=size, condition=condition)
    f = kt.joint_reactions(model, q, qd, found.qdd, f_ext=f_ext, frame="world")
    assert_close(f, [x.to_array() for x in found.f_J[1:]], ulps=1e4, scale=size,
                 condition=condition)  # fmt: skip


def test_gears_share_forces_as_constraints_do(rng):
    model = geared_robot(rng)
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    found = maximal.solution(model, q, qd, tau)
    for part, expected in (("total", found.f_J), ("bearing", found.f_c)):
        f = kt.joint_reactions(model, q, qd, tau=tau, part=part, frame="world")
        expected = np.array([x.to_array() for x in expected[1:]])
        size = max(np.max(np.abs(x.to_array())) for x in found.f_J[1:])
        assert_close(f, expected, ulps=1e5, scale=size, condition=conditioning(model, q))


def test_a_floating_base_is_held_by_nothing(rng):
    model = kt.samples.quadruped()
    assert isinstance(model.joint[1], Free)
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    tau[:6] = 0
    f = kt.joint_reactions(model, q, qd, tau=tau)
    assert_close(f[0], np.zeros(6), ulps=1e5, scale=np.max(np.abs(f)))
    bearing = kt.joint_reactions(model, q, qd, tau=rng.standard_normal(model.nv), part="bearing")
    assert_close(bearing[0], np.zeros(6), ulps=1e3, scale=np.max(np.abs(bearing)))


def test_frames_are_coordinates_of_one_force(rng):
    model = kt.samples.panda()
    q, qd, qdd = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    frame, joint = model.frame_names[-1], model.joint_names[3]

    def at(frame):
        return kt.joint_reactions(model, q, qd, qdd, frame=frame, joint=joint)

    T, world = kt.pose(model, q, model.body_names[4]), at("world")
    R, p = T[:3, :3], T[:3, 3]
    assert_close(np.concatenate([R @ at("joint")[:3], R @ at("joint")[3:]]), at("aligned"), ulps=50)
    assert_close(at("aligned")[:3] + np.cross(p, at("aligned")[3:]), world[:3], ulps=200)
    assert_close(at("aligned")[3:], world[3:], ulps=50)
    assert_close(at("body"), at("joint"), ulps=1)
    assert_close(at(model.body_names[4]), at("joint"), ulps=200)
    T = kt.pose(model, q, frame)
    R, p = T[:3, :3], T[:3, 3]
    expected = np.concatenate([R.T @ (world[:3] - np.cross(p, world[3:])), R.T @ world[3:]])
    assert_close(at(frame), expected, ulps=500, scale=np.max(np.abs(world)))


def test_frames_of_slides_and_of_loop_joints(rng):
    """Every frame has its own origin and axes; all reactions are one force about the base."""
    inertia = kt.shapes.box(0.1, 0.2, 0.3, mass=2.0)
    model = ModelBuilder("slide").body(
        "cart", joint=kt.Cylindrical("x"), at=random_placement(rng), inertia=inertia
    ).build()  # fmt: skip
    ends = {n: random_placement(rng) for n in ("predecessor_placement", "successor_placement")}
    loop = kt.model.Loop("pull", 0, 1, Free(), **ends)
    closed = model.replace(loops=(loop,))
    q, qd, tau, push = model.random_configuration(rng), *rng.standard_normal((2, 2)), rng.random(6)
    given = {"tau": tau, "loop_tau": {"pull": push}}
    R_0, p_0 = np.eye(3), np.zeros(3)
    T = kt.pose(model, q, "cart")
    body = T[:3, :3], T[:3, 3]
    X_T = model.bodies[0].placement

    def on(frame, X):
        return frame[0] @ X.E.T, frame[1] + frame[0] @ X.r

    places = {
        0: {"joint": body, "body": body, "predecessor": on((R_0, p_0), X_T), "cart": body,
            "aligned": (R_0, body[1])},
        1: {"joint": on(body, loop.successor_placement), "body": body, "cart": body,
            "predecessor": on((R_0, p_0), loop.predecessor_placement),
            "aligned": (R_0, on(body, loop.successor_placement)[1])},
    }  # fmt: skip
    world = kt.joint_reactions(closed, q, qd, **given, frame="world")
    assert np.max(np.abs(world[1])) > 0.1
    for k, frames in places.items():
        n, f = np.split(world[k], 2)
        for frame, (R, p) in frames.items():
            found = np.real(kt.joint_reactions(closed, q + 0j, qd, **given, frame=frame)[k])
            expected = np.concatenate([R.T @ (n - np.cross(p, f)), R.T @ f])
            assert_close(found, expected, ulps=1e3, scale=np.max(np.abs(world)))


# --- loops ---------------------------------------------------------------------------------------


def ball_bearing():
    """A four-bar linkage without redundant constraints."""
    return kt.samples.four_bar().replace(joint={"pin": SphereInCylinder("y")})


@pytest.fixture(params=["four_bar", "stewart", "excavator"])
def closed(request, rng):
    """A mechanism with loops in a state that they allow, and joint forces."""
    model = kt.samples.load(request.param)
    model = ball_bearing() if request.param == "four_bar" else model
    q = kt.loops.assemble(model, model.neutral())
    K = kt.loops.constraint(model, q, np.zeros(model.nv)).K
    _, s, Vt = np.linalg.svd(K)
    null = Vt[int(np.sum(s > 1e-9)) :]
    qd = null.T @ rng.standard_normal(len(null))
    return model, q, qd, rng.standard_normal(model.nv)


@pytest.mark.filterwarnings("ignore::kinetree.errors.IndeterminateWarning")
def test_loops_agree_with_all_bodies_at_once(closed, rng):
    model, q, qd, tau = closed
    f_ext = rng.standard_normal((model.body_count, 6))
    found = maximal.solution(model, q, qd, tau, [None, *map(Force.from_array, f_ext)])
    unique = kt.unique_reactions(model, q, frame="world")
    given = {"tau": tau, "f_ext": f_ext, "frame": "world"}
    f = kt.joint_reactions(model, q, qd, **given)
    drive = kt.joint_reactions(model, q + 0j, qd, **given, part="drive").real
    expected = np.array([x.to_array() for x in found.f_J[1:]])
    if not np.any(drive[model.body_count :]):  # loop joints without springs
        assert_close(f[unique], expected[unique], ulps=1e8, scale=np.max(np.abs(f)))
    assert unique.any()
    balance(model, q, qd, tau, f, f_ext)
    qdd = kt.forward_dynamics(model, q, qd, tau, f_ext)
    by_both = kt.joint_reactions(model, q, qd, qdd, **given)
    assert_close(by_both, f, ulps=1e7)


def balance(model, q, qd, tau, f, f_ext=None):
    """Newton and Euler of every body, from forces in base coordinates."""
    f_ext = None if f_ext is None else [None, *map(Force.from_array, f_ext)]
    solved = maximal.solution(model, q, qd, tau, f_ext)
    equations = maximal.equations(model, q, qd, tau, f_ext)
    a = np.concatenate([x.to_array() for x in solved.a[1:]])
    needed = equations.I @ a + equations.p
    acting = equations.P @ f.ravel()
    assert_close(acting, needed, ulps=1e8, scale=np.max(np.abs(f)))


def test_a_motion_of_loops_is_driven_by_its_actuators(rng):
    model = kt.samples.five_bar().replace(actuators=())
    q, qd = kt.loops.assemble(model, model.neutral()), np.zeros(model.nv)
    qdd = kt.forward_dynamics(model, q, qd, rng.standard_normal(model.nv))
    by_motion = kt.joint_reactions(model, q, qd, qdd)
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    assert_close(by_motion, kt.joint_reactions(model, q, qd, tau=tau), ulps=1e7)


def test_redundant_loops_say_so():
    model = kt.samples.four_bar()
    q = kt.loops.assemble(model, [0.3, 0.0, 0.0])
    with pytest.warns(IndeterminateWarning, match=r"3 redundant constraints .* 'pin' are not uniq"):
        f = kt.joint_reactions(model, q, np.zeros(3), tau=np.array([1.0, 0, 0]))
    unique = kt.unique_reactions(model, q)
    assert not unique.all()
    assert unique[:, [3, 5]].all()  # forces in the plane
    assert not unique[3, [0, 1, 2, 4]].all()
    ball = ball_bearing()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g = kt.joint_reactions(ball, q, np.zeros(3), tau=np.array([1.0, 0, 0]))
    assert kt.unique_reactions(ball, q).all()
    in_plane = [3, 5]
    assert_close(f[:, in_plane], g[:, in_plane], ulps=1e5)


def test_a_linkage_that_is_stretched_out_is_reported_as_singular():
    """All bars of a parallelogram in one line: its loop holds the pin in one direction only."""
    bar = kt.shapes.rod(1.0, mass=1.0, at=(0.5, 0, 0), axis="x")
    builder = ModelBuilder("flat")
    for name, on in (("crank", None), ("coupler", "crank"), ("rocker", "coupler")):
        at = (1.0, 0, 0) if on else None
        builder.body(name, on=on, joint=Revolute("y"), at=at, inertia=bar)
    builder.loop(
        "pin", predecessor="base", successor="rocker", joint=SphereInCylinder("y"),
        at=(1.0, 0, 0), successor_at=(1.0, 0, 0),
    )  # fmt: skip
    model, zero = builder.build(), np.zeros(3)
    flat, bent = np.array([0, 0, np.pi]), kt.loops.assemble(model, [-0.5, 0.5, -2.6])
    assert kt.unique_reactions(model, bent).all()
    unique = kt.unique_reactions(model, flat, joint="pin", frame="world")
    assert unique.tolist() == [True, True, True, False, True, True]  # pulled along the line
    with pytest.warns(IndeterminateWarning, match="1 of its 2 constraints are independent"):
        f = kt.joint_reactions(model, [flat, bent], zero, tau=zero, frame="world")
    for q, found in zip((flat, bent), f, strict=True):
        balance(model, q, zero, zero, found)


def test_single_precision_and_tensors(rng):
    import torch

    model, zero, tau = ball_bearing(), np.zeros(3), rng.standard_normal(3)
    q = kt.loops.assemble(model, [0.4, 0.0, 0.0])
    f = kt.joint_reactions(model, q, zero, tau=tau)
    short = kt.joint_reactions(*(x.astype("f4") if x is not model else x for x in (model, q, zero)),
                               tau=tau.astype("f4"))  # fmt: skip
    assert short.dtype == np.float32
    assert_close(short, f, ulps=1e11)  # 1e-5
    qdd = kt.forward_dynamics(model, q, zero, tau)
    single = (x.astype("f4") for x in (q, zero, qdd, tau))
    lam = texts.multipliers(model, *single)
    assert_close(lam, texts.multipliers(model, q, zero, qdd, tau), ulps=1e11)
    follow = torch.tensor(tau, requires_grad=True)
    found = kt.joint_reactions(model, torch.tensor(q), torch.tensor(zero), tau=follow)
    assert_close(found.detach().numpy(), f, ulps=10)
    (gradient,) = torch.autograd.grad(found[3, 3], follow)
    e = np.eye(3)
    each = [kt.joint_reactions(model, q, zero, tau=tau + x, joint="pin")[3] - f[3, 3] for x in e]
    assert_close(gradient.numpy(), each, ulps=1e5)


def test_samples_are_solved_one_by_one_only_where_they_must(monkeypatch, rng):
    def refuse(*_):
        raise AssertionError("a good sample was not solved by compiled code")

    monkeypatch.setattr(texts, "_smallest", refuse)
    for model in (ball_bearing(), kt.samples.four_bar()):
        q = np.array([kt.loops.assemble(model, [a, 0.0, 0.0]) for a in (0.2, 0.5, 0.9)])
        tau, zero = 10.0 ** np.array([[-6], [0], [6]]) * rng.standard_normal((3, 3)), np.zeros(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndeterminateWarning)
            model = model.replace(gravity=(0, 0, 0))
            f = kt.joint_reactions(model, q, zero, tau=tau)
            qdd = kt.forward_dynamics(model, q, zero, tau)
            both = kt.joint_reactions(model, q, zero, qdd, tau=tau)
        for one, other in zip(f, both, strict=True):
            assert_close(one, other, ulps=1e5)


@pytest.mark.filterwarnings("ignore::kinetree.errors.IndeterminateWarning")
def test_the_smallest_constraint_forces_whatever_the_units(rng):
    """In units of the mechanism they are those of the pseudoinverse; others are refused."""
    model, zero = kt.samples.four_bar().replace(gravity=(0, 0, 0)), np.zeros(3)
    q = kt.loops.assemble(model, [0.4, 0.0, 0.0])
    units, K = kt.loops.scaling(model), kt.loops.constraint(model, q, zero).K
    for size in (1e-6, 1.0, 1e6):
        tau = size * rng.standard_normal(3)
        qdd = kt.forward_dynamics(model, q, zero, tau)
        b = kt.inverse_dynamics(model.replace(loops=()), q, zero, qdd) - tau
        expected = units.rows * (np.linalg.pinv(units.apply(K).T) @ (b * units.columns))
        assert_close(texts.multipliers(model, q, zero, qdd, tau), expected, ulps=1e5)
        by_text = texts.multipliers(model, q + 0j, zero, qdd, tau)
        assert_close(np.real(by_text), expected, ulps=1e6)
        kt.joint_reactions(model, q, zero, qdd, tau=tau)
        for wrong in (texts.multipliers, kt.joint_reactions):
            given = {"qdd": qdd, "tau": tau + 1e-3 * size}
            with pytest.raises(ShapeError, match="tau does not produce the acceleration qdd"):
                wrong(model, q, zero, **given)


def test_a_batch_is_its_samples_and_a_kernel_agrees(rng):
    model = ball_bearing()
    q = np.array([kt.loops.assemble(model, [a, 0.0, 0.0]) for a in (0.2, 0.5, 0.9)])
    tau = rng.standard_normal((3, 3))
    f = kt.joint_reactions(model, q, np.zeros(3), tau=tau)
    each = [kt.joint_reactions(model, x, np.zeros(3), tau=y) for x, y in zip(q, tau, strict=True)]
    assert_close(f, each, ulps=1e4)

    @kt.kernel
    def load(model, q, tau):
        f = kt.joint_reactions(model, q, 0 * tau, tau=tau, part="bearing", joint="pin")
        return f @ f

    of_pin = kt.joint_reactions(model, q, np.zeros(3), tau=tau, part="bearing", joint="pin")
    assert_close(load(model, q, tau), np.sum(of_pin**2, axis=-1), ulps=1e5)


def test_forces_along_loop_joints_pass_through_them(rng):
    model = ball_bearing()
    q = kt.loops.assemble(model, [0.4, 0.0, 0.0])
    push = rng.standard_normal(model.loops[0].joint.nv)
    args = (model, q, np.zeros(3))
    drive = kt.joint_reactions(*args, tau=np.zeros(3), loop_tau={"pin": push}, part="drive")
    T_a = model.loops[0].active_subspace(
        np.concatenate(list(kt.loops.loop_positions(model, q).values()))
    )
    assert_close(drive[3], (T_a @ push).to_array(), ulps=100)
    f = kt.joint_reactions(*args, tau=np.zeros(3), loop_tau={"pin": push}, frame="world")
    solved = kt.loops.solve(*args, np.zeros(3), loop_tau={"pin": push})
    assert_close(f[3], solved.loop_forces["pin"].force.to_array(), ulps=1e6)
    f_ext = rng.standard_normal((3, 6))
    given = {"tau": np.zeros(3), "loop_tau": {"pin": push}, "f_ext": f_ext, "frame": "world"}
    f = kt.joint_reactions(model, q + 0j, np.zeros(3), **given).real
    both = kt.loops.solve(*args, np.zeros(3), f_ext, loop_tau={"pin": push})
    assert_close(f[3], both.loop_forces["pin"].force.to_array(), ulps=1e6)
    # the same push in joint space moves the same, and loads other joints
    tau = kt.loops.loop_joint_forces(model, q, {"pin": push})
    assert_close(kt.forward_dynamics(*args, tau), solved.qdd, ulps=1e6)


# --- derivatives and messages --------------------------------------------------------------------


def test_derivatives_against_complex_steps(rng):
    model = kt.samples.ur5()
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    h = 1e-30

    def bearing(q):
        return kt.joint_reactions(model, q, qd, tau=tau, part="bearing", frame="aligned")

    @kt.kernel
    def text(model, q, qd, tau):
        return kt.joint_reactions(model, q, qd, tau=tau, part="bearing", frame="aligned")

    J = kt.differentiate(text, wrt="q")(model, q, qd, tau)
    steps = [np.imag(bearing(q + 1j * h * e)) / h for e in np.eye(model.nv)]
    assert_close(J, np.stack(steps, -1), ulps=1e5)


def test_derivatives_of_reactions_of_loops(rng):
    model = ball_bearing()
    q = kt.loops.assemble(model, [0.4, 0.0, 0.0])

    @kt.kernel
    def text(model, q, tau):
        return kt.joint_reactions(model, q, 0 * tau, tau=tau)

    tau = rng.standard_normal(3)
    J = kt.differentiate(text, wrt="tau")(model, q, tau)
    e = np.eye(3)
    columns = [text(model, q, tau + x) - text(model, q, tau) for x in e]  # linear in tau
    assert_close(J, np.stack(columns, -1), ulps=1e6)


def test_messages():
    model, q = kt.samples.ur5(), np.zeros(6)
    with pytest.raises(ShapeError, match=r"needs the motion qdd or the joint forces tau$"):
        kt.joint_reactions(model, q, q)
    with pytest.raises(ShapeError, match="not both: of a tree, the motion determines"):
        kt.joint_reactions(model, q, q, q, tau=q)
    with pytest.raises(UnknownNameError, match="'total', 'bearing', 'drive', got 'all'"):
        kt.joint_reactions(model, q, q, q, part="all")
    with pytest.raises(UnknownNameError, match=r"'joint', 'predecessor', .* or a name: "):
        kt.joint_reactions(model, q, q, q, frame="Joint")
    with pytest.raises(UnknownNameError, match="has no joint 'elbow_joynt'"):
        kt.joint_reactions(model, q, q, q, joint="elbow_joynt")
    with pytest.raises(UnknownNameError, match="has no loop joint 'pin'"):
        kt.joint_reactions(model, q, q, q, loop_tau={"pin": 1.0})
    bar = ball_bearing()
    q = kt.loops.assemble(bar, [0.4, 0.0, 0.0])
    with pytest.raises(ShapeError, match="tau does not produce the acceleration"):
        kt.joint_reactions(bar, q, np.zeros(3), np.zeros(3), tau=np.ones(3))


def test_constraints_of_ones_own_push_along_the_joints():
    """Two slides, of which one must follow the other: the tree carries what the motion takes."""
    box = kt.shapes.box(0.1, 0.1, 0.1, mass=2.0)
    model = (
        ModelBuilder("cross", gravity=(0, 0, -9.81))
        .body("carriage", joint=kt.Prismatic("x"), inertia=box)
        .body("slide", on="carriage", joint=kt.Prismatic("y"), inertia=box)
        .build()
        .with_constraint("diagonal", position=lambda q: q[0] - q[1])
    )
    f = kt.joint_reactions(model, np.zeros(2), np.zeros(2), tau=np.array([6.0, 0.0]))
    # 4 ax + 2 ay = 6 with ax = ay
    expected = [[0, 0, 0, 4.0, 2.0, 39.24], [0, 0, 0, 2.0, 2.0, 19.62]]
    assert_close(f, expected, ulps=50)
    assert kt.unique_reactions(model, np.zeros(2)).all()


def closed_anywhere(joint, rng):
    """Two branches of three bodies, tied by a joint of any kind where they happen to be."""
    tree = random_tree(6, rng, joints=[Revolute("x"), Revolute("y"), Free()], branching=0.5)
    q = tree.random_configuration(rng)
    X_0 = base_transforms(tree, joint_transforms(tree, q)[0])
    loops = [
        closed_loop(X_0, f"loop{n}", ends, joint, joint.random(rng), random_placement(rng))
        for n, ends in enumerate([(2, 5), (0, 6)])
    ]
    return tree.replace(loops=tuple(loops)), q


@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=repr)
def test_bearings_of_loop_joints_of_every_kind_push_along_their_constraints(joint, rng):
    """Two bodies feel ``T lam`` as joint space feels ``Kᵀ lam``, and the drive as ``B tau``."""
    model, q = closed_anywhere(joint, rng)
    qd, NB = np.zeros(model.nv), model.body_count
    K = loop_constraints(model, q, qd).K
    lam, loop_tau = rng.standard_normal(len(K)), rng.standard_normal(2 * joint.nv)
    args = (model, q, qd, qd, None, lam, loop_tau)
    on = {"joints": [NB + 1, NB + 2], "frame": "world"}

    def in_joint_space(f):
        total = np.zeros(model.nv)
        for loop, x in zip(model.loops, f, strict=True):
            for body, sign in ((loop.successor, 1), (loop.predecessor, -1)):
                if body:
                    name = model.body_names[body]
                    total += sign * kt.jacobian(model, q, name, frame="world").T @ x
        return total

    found = {p: texts.joint_reactions(*args, **on, part=p) for p in PARTS}
    assert_close(in_joint_space(found["bearing"]), K.T @ lam, ulps=1e4, scale=10.0)
    B = loop_joint_motion(model, q, qd).B
    assert_close(in_joint_space(found["drive"]), B @ loop_tau, ulps=1e4, scale=10.0)
    assert_close(found["total"], found["bearing"] + found["drive"], scale=10.0)


def test_forces_along_loop_joints_join_those_from_outside(rng):
    model, q = closed_anywhere(Revolute("z"), rng)
    loop_tau = rng.standard_normal(2)
    outside = [None, *(Force.from_array(x) for x in rng.standard_normal((6, 6)))]
    assert texts.add_loop_forces(model, q, outside, None) is outside
    alone = texts.add_loop_forces(model, q, None, loop_tau)
    both = texts.add_loop_forces(model, q, outside, loop_tau)
    assert len(alone) == len(both) == 7
    for f, g, sum_of in zip(alone[1:], outside[1:], both[1:], strict=True):
        assert_close(sum_of.to_array(), f.to_array() + g.to_array())
    assert np.any(alone[5].to_array())
