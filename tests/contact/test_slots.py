"""Steps with slots for the contacts that are close, as GPUs take them of scenes with many."""

import sys

import numpy as np
import pytest
from support import fake_cupy
from support.backends import cuda_on_cpu
from support.on_device import transition

import kinetree as kt
from kinetree.codegen.inline import evaluate
from kinetree.codegen.render import cuda_outlined
from kinetree.codegen.render.cuda import ROUTINES
from kinetree.contact import Scene, TimeStepping
from kinetree.contact.engine import slot_points
from kinetree.contact.stepping import slots as stepping
from kinetree.contact.stepping import step as step_text
from kinetree.contact.stepping.drives import StepStart
from kinetree.contact.stepping.step import ContactStep
from kinetree.simulation.rollouts.rollout import run_of

pytestmark = pytest.mark.usefixtures("specialised")
H = 2e-3


def flail(*, stone=False):
    """A box that flies, and two rods on hinges; 8 + 2 + 10 points against the ground."""
    b = kt.ModelBuilder("flail")
    if stone:
        b.geometry(kt.geometry.Sphere(0.5), on="base", at=(0.3, 0.0, -0.45))
    b.body("box", joint=kt.Free(), inertia=kt.shapes.box(0.3, 0.2, 0.1, mass=2.0))
    b.geometry(kt.geometry.Box((0.3, 0.2, 0.1)), on="box")
    rod = kt.shapes.capsule(0.03, 0.2, mass=0.5)
    b.body("rod", on="box", joint=kt.Revolute("y"), at=(0.2, 0, 0), inertia=rod)
    b.geometry(kt.geometry.Capsule(0.03, 0.2), on="rod")
    b.body("drum", on="rod", joint=kt.Prismatic("z"), at=(0, 0, 0.2), inertia=rod)
    b.geometry(kt.geometry.Cylinder(0.05, 0.08), on="drum")
    return kt.contact.with_ground(b.build())


FLAIL = flail()


def settings(model=FLAIL, **options):
    return TimeStepping(Scene(model, "base", friction=0.6), compiled_rows=0, **options)


def thrown(count, rng, model=FLAIL):
    q = np.tile(model.neutral(), (count, 1))
    q = model.integrate(q, 0.3 * rng.standard_normal((count, model.nv)))
    q[:, 2] += 1e-4 - Scene(model, "base").candidate_positions(model, q)[0].min(axis=-1)
    qd = rng.standard_normal((count, model.nv))
    qd[:, 3:6] = 0.3, 0, -0.5
    return q, qd


@pytest.mark.parametrize(("stone", "together"), [(False, 2), (True, 1)], ids=["ground", "stone"])
def test_a_step_is_that_of_the_unrolled_code(stone, together, rng):
    """State, work and residuals, over 60 steps in which corners, rims and ends arrive and slide.

    Unrolled code solves for the forces of the first pass to 2e-4 m/s only, which enters velocity
    products.
    """
    model = flail(stone=stone)
    contact = settings(model)
    step = transition(contact).contact
    whole = ContactStep(step.constraints, step.settings, step.tree)
    field = transition(contact).field
    (q,), (qd,) = thrown(1, rng, model)
    tau, most = np.zeros(model.nv), 0
    force, all_force = np.zeros(step.rows), np.zeros(whole.rows)
    for _ in range(60):
        ends = [
            s(None, field, model, StepStart(0.0, H, q, qd, tau), f)
            for s, f in ((step, force), (whole, all_force))
        ]
        for name in ("q", "qd", "work"):
            a, b = (getattr(end, name) for end in ends)
            np.testing.assert_allclose(a, b, rtol=0, atol=5e-6, err_msg=name)
        energies = [end.residuals[5:7] for end in ends]
        np.testing.assert_allclose(*energies, rtol=0, atol=5e-6)
        assert ends[0].residuals[:4].max() < 1e-7
        q, qd, force, all_force = ends[1].q, ends[1].qd, ends[0].force, ends[1].force
        acting = step.contact_forces(force, np.asarray)[:, 0]
        most = max(most, np.sum(acting > 0))
        np.testing.assert_allclose(
            acting.sum(), whole.contact_forces(all_force, np.asarray)[:, 0].sum(), atol=0.01
        )
    assert most >= together


SERVOS = (
    kt.Actuator("rod", 2, gain=(90,), bias=(0, -90, -2), effort=(-3.0, 3.0)),
    kt.Actuator("drum", 3, gain=(2000,), bias=(0, -2000, -20)),
)


def test_bounded_servos_act_as_in_the_unrolled_code(rng, monkeypatch):
    """Where unrolled code solves for the forces of the first pass as exactly as for others."""
    monkeypatch.setattr(step_text, "ROUGH", 2e-10)
    model = FLAIL.replace(actuators=SERVOS)
    contact, u = settings(model, conserving=False), np.array([0.1, 0.03])
    given = transition(contact, controls=u)
    step, field = given.contact, given.field
    assert isinstance(step, stepping.SlotStep)
    whole = ContactStep(step.constraints, step.settings, step.tree)
    (q,), (qd,) = thrown(1, rng, model)
    force, all_force, forces = np.zeros(step.rows), np.zeros(whole.rows), []
    for _ in range(40):
        with np.errstate(invalid="ignore"):  # rounds after exact forces, which do not count
            ends = [
                s(None, field, model, StepStart(0.0, H, q, qd, u), f)
                for s, f in ((step, force), (whole, all_force))
            ]
        for name in ("q", "qd", "work"):
            a, b = (getattr(end, name) for end in ends)
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9, err_msg=name)
        q, qd, force, all_force = ends[1].q, ends[1].qd, ends[0].force, ends[1].force
        forces.append(90 * (u[0] - q[7]) - 2 * qd[6])
    sizes = np.abs(forces)
    assert sizes.min() < 3 < sizes.max()  # it is at its bounds, and between


@pytest.mark.parametrize(
    ("dtype", "bound", "sweeps"),
    [("float64", 1e-10, 48), ("float32", 1e-4, 32), ("float32", 1e-4, 0)],
)
def test_the_text_for_a_gpu_gives_the_same(dtype, bound, sweeps, rng, tmp_path, monkeypatch):
    """In pieces, too, which are compiled apart: of text that would be too short for them.

    Without sweeps all worlds need Newton's method, each a number of steps of its own.
    """
    monkeypatch.setattr(cuda_outlined, "LONG", 60)
    monkeypatch.setitem(stepping.SOLVER[dtype], "sweeps", sweeps)
    launches, contact = [], settings()
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    runtime = fake_cupy.runtime(launches, cuda_on_cpu(tmp_path, ROUTINES))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", runtime)
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    q, qd = thrown(3, rng)

    @kt.kernel
    def hold(model, q, qd):
        return np.concatenate([np.zeros(6), -3.0 * q[7:] - 0.1 * qd[6:]])

    device = sys.modules["cupy"].asarray
    found = kt.rollout(
        FLAIL, device(q.astype(dtype)), device(qd.astype(dtype)), steps=8, dt=H, store_every=4,
        contact=contact, limits=None, controller=hold,
    )  # fmt: skip
    assert [(name, kind) for name, kind, *_ in launches] == [("rollout", dtype)] * 2
    steps = transition(contact, dtype, controller=hold)
    zeros, ones = np.zeros(3), np.ones(3)
    given = zeros, H * ones, 8 * ones, q, qd, zeros, np.zeros((3, steps.memory))
    right = evaluate(steps.steps().program, given)
    for name, expected in zip(("q", "qd"), right, strict=False):
        a = np.asarray(getattr(found, name))[-1]
        np.testing.assert_allclose(a, expected, rtol=0, atol=bound * 30, err_msg=name)
    assert found.contact_force.shape == (3, 3, contact.scene.candidates.size, 3)
    assert np.asarray(found.contact_force)[-1, ..., 0].max() > 0
    assert np.asarray(found.residuals)[:, 0].max() < bound
    assert not np.asarray(found.failed).any()
    sys.modules.pop("kinetree.arrays.cupy_kind", None)


@kt.kernel
def sees(model, q, qd, contact_force):
    return np.concatenate([q, qd, contact_force[:, 0]])


@kt.kernel
def earns(model, qd):
    return -qd @ qd


def rods():
    """Two rods on a hinge, tilted, just above the ground."""
    b = kt.ModelBuilder("rods")
    for name, on, joint in (("one", None, kt.Free()), ("other", "one", kt.Revolute("y"))):
        b.body(name, on=on, joint=joint, inertia=kt.shapes.capsule(0.03, 0.2, mass=0.5))
        b.geometry(kt.geometry.Capsule(0.03, 0.2), on=name)
    model = kt.contact.with_ground(b.build())
    q = model.integrate(model.neutral(), np.array([0.4, 0.3, 0, 0, 0, 0, 0.5]))
    q[2] += 1e-4 - Scene(model, "base").candidate_positions(model, q)[0].min()
    return model, q


RODS, TILTED = rods()


@kt.kernel
def begins(model, uniform: (2,)):
    return {"q": np.concatenate([TILTED[:2], [TILTED[2] + 0.001 * uniform[0]], TILTED[3:]])}


def test_an_environment_on_a_gpu_takes_scenes_that_are_not_unrolled(tmp_path, monkeypatch):
    """Two rods fall: the same as on a CPU, where the scene is small enough."""
    launches, envs = [], {}
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    runtime = fake_cupy.runtime(launches, cuda_on_cpu(tmp_path, ROUTINES))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", runtime)
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    for device, rows in (("cpu", 1000), ("cuda", 0)):
        contact = TimeStepping(Scene(RODS, "base", friction=0.6), compiled_rows=rows)
        envs[device] = env = kt.learning.Environment(
            RODS, 2, observe=sees, reward=earns, reset=begins, contact=contact, limits=None,
            dt=H, decimation=2, episode=20, device=device, dtype="float64",
            arrays=None if device == "cpu" else "cupy",
        )  # fmt: skip
        for _ in range(8):
            seen, reward, *_, info = env.step(np.zeros((2, env.action_size)))
        assert not np.asarray(info["failed"]).any()
        envs[device] = np.asarray(seen), np.asarray(reward)
    (here, gained), (there, too) = envs.values()
    np.testing.assert_allclose(there[:, :15], here[:, :15], rtol=0, atol=1e-5)
    np.testing.assert_allclose(there[:, 15:].sum(axis=1), here[:, 15:].sum(axis=1), rtol=1e-3)
    np.testing.assert_allclose(too, gained, atol=1e-4)
    assert there[:, 15:].max() > 1
    assert {name for name, *_ in launches} == {"Environment.step", "Environment.reset"}
    sys.modules.pop("kinetree.arrays.cupy_kind", None)


SHAPES = {
    "sphere": kt.geometry.Sphere(0.1), "capsule": kt.geometry.Capsule(0.1, 0.3),
    "box": kt.geometry.Box((0.3, 0.2, 0.1)), "cylinder": kt.geometry.Cylinder(0.1, 0.2),
    "ellipsoid": kt.geometry.Ellipsoid((0.1, 0.2, 0.3)),
}  # fmt: skip


def somewhere(rng):
    """A pose, (4, 4)."""
    T, Q = np.eye(4), np.linalg.qr(rng.standard_normal((3, 3)))[0]
    T[:3, :3], T[:3, 3] = Q * np.linalg.det(Q), 0.3 * rng.standard_normal(3)
    return T


@pytest.mark.parametrize("name", SHAPES)
def test_points_on_a_slope_are_those_of_the_closed_forms(name, rng):
    """Gaps, points and their rates, of shapes that are turned in their bodies."""
    b = kt.ModelBuilder(name)
    b.geometry(kt.geometry.Plane(), on="base", at=somewhere(rng))
    b.body("a", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0))
    b.body("b", on="a", joint=kt.Revolute((0.6, 0.0, 0.8)), inertia=kt.shapes.sphere(0.1, mass=1.0),
           at=somewhere(rng))  # fmt: skip
    b.geometry(SHAPES[name], on="b", at=somewhere(rng))
    model = b.build()
    step = transition(settings(model)).contact
    for _ in range(20):
        q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
        found = place_bodies(step, model, q, v)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stepping, "_points", lambda pair: None)
            traced = step._trace_contacts(model, q, v)
        np.testing.assert_allclose(found, traced[:, :7], rtol=0, atol=1e-14)


def place_bodies(step, model, q, v):
    """Gap, point and its rate of each contact by the procedures for a GPU."""
    t = {n: np.array(x) for n, x in step._tables.items() if isinstance(x, list | np.ndarray)}
    t |= {n: np.array(x, float) for n, x in step._place_bodies(model, q, v, H).items()}
    found = []
    for c, i in enumerate(t["body"]):
        point, point_rate = np.zeros((2, 3))
        rows = t["frame"][t["shape"][c]], t["spot"][c], t["plane"][t["ground"][c]]
        gap = slot_points.touch(int(t["kind"][c]), *rows, t["pose"][i], t["origin"][t["tree"][i]],
                                t["twist"][i], point, point_rate)  # fmt: skip
        found.append([gap, *point, *point_rate])
    return np.array(found)


@pytest.mark.parametrize(
    ("dtype", "bound", "landings", "thorough"),
    [
        ("float64", 1e-6, {22: 10, 21: 18}, True),
        ("float32", 1e-4, {22: 10, 23: 8}, True),
        ("float32", 2e-2, {22: 10}, False),
    ],
)
def test_laws_hold_where_sweeps_alone_do_not_end(dtype, bound, landings, thorough):
    """A humanoid lands: forces of redundant contacts grow for thousands of sweeps until one slides.

    Sweeps alone leave 6e-5 and 1e-4 m/s in the worst step, 1e-3 and 6e-4 for single precision.
    """
    model, dt = kt.contact.with_ground(kt.samples.humanoid()), 1e-3
    scene = Scene(model, "base", friction=0.8)
    damping = np.concatenate([np.zeros(6), np.ones(model.nv - 6)])
    contact = TimeStepping(scene, damping=damping, compiled_rows=0, thorough=thorough)
    start = np.tile(model.posture("home").q, (33, 1))
    rng = np.random.default_rng(2)
    q = model.integrate(start, 0.03 * rng.standard_normal((33, model.nv)))
    q[:, 2] += 5e-4 - scene.candidate_positions(model, q)[0].min(axis=-1)
    qd = 0.3 * rng.standard_normal((33, model.nv))
    steps = run_of(model, q[0], qd[0], steps=1, dt=dt, contact=contact, limits="stiff",
                   dtype=dtype, on_device=True).transition  # fmt: skip
    for i, count in landings.items():
        a, v, force, worst = q[i], qd[i], np.zeros(steps.contact.rows), 0.0
        for _ in range(count):
            start = StepStart(0.0, dt, a, v, -damping * v)
            end = steps.contact(None, steps.field, model, start, force)
            a, v, force, worst = end.q, end.qd, end.force, max(worst, end.residuals[0])
        assert worst < bound
        assert thorough or worst > 3e-4  # which the residuals tell


def test_contacts_without_a_slot_are_errors_of_velocity():
    """A box that lies flat on four corners, with slots for two."""
    q = FLAIL.neutral()
    q[2] = 0.05
    errors = {}
    for slots in (2, 8):
        step = transition(settings(slots=slots)).contact
        field = transition(settings()).field
        start = StepStart(0.0, H, q, np.zeros(8), np.zeros(8))
        end = step(None, field, FLAIL, start, np.zeros(step.rows))
        errors[slots] = end.residuals[0]
        assert step.rows == 4 * slots
    assert errors[8] < 1e-9
    assert errors[2] > 1e-3


@pytest.mark.parametrize("engine", [True, False], ids=["engine", "slots"])
def test_stiff_stops_at_several_joints_of_a_limb_take_energy_and_give_none(engine, rng):
    """Hip yaw and ankle roll of a bent leg feel each other: explicit stops threw them apart."""
    model = kt.contact.with_ground(kt.samples.humanoid())
    contact = TimeStepping(Scene(model, "base", friction=0.8))
    law = kt.StiffLimits().of(model)
    count, steps = (16, 300) if engine else (16, 4)
    q = np.tile(np.array(model.posture("home").q), (count, 1))
    for i_q, _, sign, bound, *_ in law.stops[::2]:
        q[:, i_q] = bound - sign * rng.uniform(-0.01, 0.02, count)
    q[:, 2] += 0.05 - contact.scene.candidate_positions(model, q)[0].min(axis=-1)
    qd = 3 * rng.standard_normal((count, model.nv))
    options = {"steps": steps, "dt": 1e-3, "contact": contact, "limits": "stiff"}
    if engine:
        found = kt.rollout(model, q, qd, **options)
        assert found.tier == "general"
        assert not found.failed.any()
        states = found.q, found.qd
    else:
        kernel = transition(contact, limits="stiff", dt=1e-3).steps()
        ones, memory = np.ones(count), np.zeros((count, kernel.inputs[-1].size))
        states = [(q, qd)]
        for k in range(1, steps + 1):
            given = 0 * ones, 1e-3 * ones, k * ones, q, qd, 0 * ones, memory
            states.append(evaluate(kernel.program, given)[:2])
        states = [np.array(x) for x in zip(*states, strict=True)]
    energy = kt.kinetic_energy(model, *states) + kt.potential_energy(model, states[0])
    for i_q, _, sign, bound, k, _ in law.stops:
        energy = energy + k / 2 * np.maximum(0, sign * (bound - states[0][..., i_q])) ** 2
    assert np.all(energy < 1.01 * energy[0])  # springs that joints enter at once have some, too
    assert np.mean(energy[-1]) < np.mean(energy[0])


def crowd(count):
    """Balls that may all touch each other."""
    b = kt.ModelBuilder("crowd")
    for k in range(count):
        b.body(f"ball{k}", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0))
        b.geometry(kt.geometry.Sphere(0.1), on=f"ball{k}")
    return kt.contact.with_ground(b.build())


def test_what_slots_do_not_apply_to_is_rejected():
    b = kt.ModelBuilder("a wall that falls")
    for name, shape in (("wall", kt.geometry.Plane()), ("ball", kt.geometry.Sphere(0.1))):
        b.body(name, joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0))
        b.geometry(shape, on=name)
    walls = kt.contact.with_ground(b.build())
    reasons = "is of a (Plane and Sphere|Sphere and Plane)", "more than 192 variables move bodies"
    for model, reason in zip((walls, crowd(34)), reasons, strict=True):
        contact = TimeStepping(Scene(model), compiled_rows=0)
        with pytest.raises(kt.errors.ModelError, match=reason):
            run_of(model, model.neutral(), steps=1, contact=contact, dtype="float64",
                   on_device=True)  # fmt: skip
    limited = FLAIL.replace(limits={FLAIL.joint_names[1]: kt.Limits((-0.5,), (0.5,))})
    contact = TimeStepping(Scene(limited, "base"), compiled_rows=0)
    with pytest.raises(kt.errors.ModelError, match=r"rigid stops or exact joint friction"):
        run_of(limited, limited.neutral(), steps=1, dt=H, contact=contact, limits="rigid",
               dtype="float64", on_device=True)  # fmt: skip
    with pytest.raises(kt.errors.ModelError, match="slots must be an integer from 1 to 64"):
        settings(slots=0)
