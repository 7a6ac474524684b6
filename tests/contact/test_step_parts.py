"""Parts of a time step on their own: solver, energy balance, rows of joints, what is said."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import expm
from support.closeness import assert_close

import kinetree as kt
from kinetree.codegen import tiers
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.contact import Scene, TimeStepping, with_ground
from kinetree.contact.complementarity import cones
from kinetree.contact.history import Residuals, accumulate, gather
from kinetree.contact.scheme.constraints import coupled_rows
from kinetree.contact.settings import CLOSED
from kinetree.contact.stepping.balance import Balance, balance_energy
from kinetree.contact.stepping.choice import joint_rows
from kinetree.contact.stepping.projection import GapProjection
from kinetree.contact.stepping.solver import Problem, solve_in_kernel
from kinetree.contact.stepping.stepper import ContactStepper
from kinetree.errors import SimulationWarning
from kinetree.model import geometry
from kinetree.simulation.setup import Effects


def random_step(rng, contacts=3, rank=12, far=0.0):
    """Contacts, a loop, a limit and dry friction; some contacts out of reach."""
    low, high = np.array([-np.inf, 0.0, -0.4]), np.array([np.inf, np.inf, 0.4])
    J = rng.normal(size=(3 * contacts + 3, rank))
    b = J @ rng.normal(size=rank)
    b[0] += far
    return Problem(J @ J.T, b, rng.uniform(0, 1, contacts), low, high)


@pytest.mark.parametrize("units", [1.0, 1e-6, 1e6])
def test_forces_of_a_step_are_those_of_the_cones(rng, units):
    for _ in range(8):
        given = random_step(rng)
        bounds = {"low": given.low / units, "high": given.high / units}
        problem = given._replace(A=units**2 * given.A, b=units * given.b, **bounds)
        lam, error = solve_in_kernel(problem, np.zeros(12), 1e-11 * units, 128)
        exact = cones.solve(given.A, given.b, given.mu, low=given.low, high=given.high)
        assert_close(units * lam, exact.lam, ulps=1e7)
        assert error <= 1e-11 * units
        assert_close(error, np.max(np.abs(problem.errors(lam))), scale=units)
    nothing = Problem(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))
    warm, error = solve_in_kernel(nothing, np.zeros(0), 1e-12, 8)
    assert (len(warm), error) == (0, 0.0)


def test_energy_that_a_step_would_gain_is_taken_from_its_velocities(rng):
    m = kt.samples.arm()
    seen = set()

    def held(end, after):
        states = ((q, qd), (end, after))
        return [(kt.kinetic_energy(m, *at), kt.potential_energy(m, at[0])) for at in states]

    for gain, contact, joints in (
        (1.1, 0.0, 0.0),
        (0.9, -0.05, 0.02),
        (1.1, 0.3, 0.5),
        (1.3, -0.1, 0.0),
    ):
        q, qd = m.random_configuration(rng), rng.normal(size=m.nv)
        end, after = m.integrate(q, 1e-3 * qd), gain * qd
        found, balance, left = balance_energy(
            *held(end, after), after, Balance(joints, contact, 0.0)
        )
        assert_close(left, held(end, found)[1], ulps=1e4)
        energies = [
            kt.kinetic_energy(m, x, v) + kt.potential_energy(m, x)
            for x, v in ((q, qd), (end, after), (end, found))
        ]
        start, would, ends = (float(x) for x in energies)
        allowed = start + joints + min(contact, 0.0)
        assert_close(ends, min(would, allowed), ulps=1e4)
        assert_close(balance.taken, max(would - allowed, 0.0), scale=abs(would), ulps=1e4)
        assert_close(found * np.linalg.norm(after), after * np.linalg.norm(found))
        assert balance.gained < 1e-12 * abs(would)
        assert balance.work == balance.joints + balance.contact - balance.lost - balance.taken
        seen.add(would > allowed)
    assert seen == {True, False}
    _, stopped, _ = balance_energy(*held(end, 1e-3 * qd), 1e-3 * qd, Balance(-100.0, 0.0, 0.0))
    slow = float(kt.kinetic_energy(m, end, 1e-3 * qd))
    assert_close(stopped.taken, slow, ulps=1e4)
    fallen = float(kt.potential_energy(m, end) - kt.potential_energy(m, q))
    assert_close(stopped.gained, 100.0 - float(kt.kinetic_energy(m, q, qd)) + fallen, ulps=1e4)


def test_rows_of_joints_with_little_friction():
    law = {"static": 1.0, "stribeck_velocity": 0.01, "levels": np.array([0.3, 0.0, 2.0, 0.5])}
    effects = Effects(None, None, SimpleNamespace(**law), None, None)
    rows = joint_rows(effects, SimpleNamespace(others=lambda model: np.array([1, 1, 1, 0])))
    assert rows.friction == ((0, 0.3), (2, 2.0))


def test_errors_are_small_relative_to_speeds_of_either_sign():
    step = SimpleNamespace(contact_step=SimpleNamespace(settings=SimpleNamespace(tolerance=1e-3)))
    residuals = np.array([[5e-3, 9.0], [5e-3, 9.0], [5e-3, 0.0], [1e-4, 9.0]])
    speeds = np.array([[0.1, -9.0], [9.0, 0.0], [-0.1, 0.1], [0.0, 0.0]])
    assert ContactStepper._is_fine(step, residuals, speeds).tolist() == [True, True, False, True]


def two_balls(dynamics):
    """Two that slide along x over the ground and rise along z."""
    builder = kt.ModelBuilder("balls")
    for name in ("a", "b"):
        rail = f"rail {name}"
        builder.body(
            rail, on="base", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(0.1, mass=0.5),
            dynamics=dynamics if name == "a" else kt.JointDynamics(),
        )  # fmt: skip
        builder.body(
            name, on=rail, joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.1, mass=1.5)
        )
        builder.geometry(geometry.Sphere(0.1), on=name, name=name)
    return with_ground(builder.build())


@pytest.fixture(scope="module")
def balls():
    return two_balls(kt.JointDynamics())


def on_a_spring(K, D, h, n, start):
    """States, (n + 1, 2), of a body of 2 kg that slides on a spring."""
    model = two_balls(kt.JointDynamics(stiffness=K, damping=D))
    contact = TimeStepping(Scene(model, friction=0.0), compiled_rows=0, tolerance=1e-12)
    q, qd = np.array([start[0], 0.1, 1.0, 0.1]), np.array([start[1], 0, 0, 0])
    motion = kt.simulate(model, q, qd, duration=n * h, dt=h, contact=contact)
    return np.stack([motion.q[:, 0], motion.qd[:, 0]], axis=1)


@pytest.mark.parametrize(("K", "D"), [(200.0, 0.0), (200.0, 3.0), (0.0, 3.0)])
def test_springs_and_dampers_are_of_second_order(K, D):
    """Against the closed solution ``exp(A t)``, after 1 s with an angle of ``h ω = 0.2, 0.1``."""
    exact = expm(np.array([[0.0, 1.0], [-K / 2, -D / 2]])) @ [0.1, 0.3]
    errors = [
        np.linalg.norm(on_a_spring(K, D, h, round(1 / h), [0.1, 0.3])[-1] - exact)
        for h in (0.02, 0.01)
    ]
    assert errors[0] < 0.05  # of 1 m/s
    assert 3.8 < errors[0] / errors[1] < 4.2


def test_springs_lose_little_energy_and_stiff_ones_come_to_rest():
    K = 200.0
    for h, most in ((0.01, 1e-4), (0.005, 1e-4 / 32)):  # h⁶ a step, h⁵ in all: (h ω)² = 0.01
        x, v = on_a_spring(K, 0.0, h, 1000, [0.1, 0.0]).T
        E = v**2 + K / 2 * x**2
        assert np.ptp(E) < most * E[0] * (0.01 / h)
    h = 0.01
    for size in (1e4, 1e6, 1e8):
        x, v = on_a_spring(2 * size / h**2, 0.0, h, 8, [1e-3, 1.0]).T
        assert np.all(np.abs(v[2:]) < 3 / size)
        assert np.all(np.abs(x[2:]) < 3 * h / size)


def test_springs_of_controllers_are_implicit(balls):
    """Trapezoidal ``2 Δv = h (τ - K Δx/2 - D Δv/2)`` but for (h² K / m)² of a body that slides."""
    scene, h, tau = Scene(balls, friction=0.0), 0.001, np.array([3.0, 0, -1.0, 0])
    K, D = [200.0, 0, 50.0, 0], [10.0, 0, 0.0, 0]
    options = {"compiled_rows": 0, "conserving": False, "tolerance": 1e-12}
    contact = TimeStepping(scene, stiffness=K, damping=D, **options)
    q, qd = [0, 0.1, 1.0, 0.1], np.array([0.4, 0, -0.2, 0])

    def held(t, q, qd):
        return tau

    motion = kt.simulate(balls, q, qd, duration=h, dt=h, contact=contact, controller=held)
    K, D = np.array(K), np.array(D)
    change = (h * tau - h * h * K * qd / 2) / (2.0 + h * D / 2 + h * h / 4 * K)
    assert np.all(np.abs(motion.qd[-1] - qd - change)[[0, 2]] < 1e-8 * np.abs(change)[[0, 2]])
    assert_close(motion.contact.force[-1, 1:, 0], 1.5 * 9.81 * np.ones(2), ulps=1e4)
    with pytest.raises(
        kt.ModelError,
        match=r"stiffness of a controller must be one number or nv = 4, none negative",
    ):
        TimeStepping(scene, stiffness=[1.0, -1.0, 1.0, 1.0])


def test_the_pair_that_starts_inside_is_named(balls):
    contact = TimeStepping(Scene(balls), compiled_rows=0)
    for place, name in ((1, "a"), (3, "b")):
        q = np.array([0, 0.1, 1.0, 0.1])
        q[place] = 0.06
        with pytest.warns(SimulationWarning, match=rf"starts with 'ground/{name}' 0\.04 m inside"):
            kt.simulate(balls, q, duration=1e-3, contact=contact)


def test_residuals_of_steps_are_the_worst_and_sums_of_energies(rng):
    steps = rng.normal(size=(4, 3, 10))
    total = steps[0]
    for each in steps[1:]:
        total = accumulate(total, each)
    adds_up = {"contact_work", "loss", "taken", "touching"}
    for k, name in enumerate(Residuals._fields):
        expected = steps[..., k].sum(0) if name in adds_up else steps[..., k].max(0)
        assert_close(total[..., k], expected)
        assert_close(gather(list(steps))[..., k], expected)


def test_errors_shrink_from_round_to_round_and_end_within_rounding(rng):
    for contacts, rank in ((4, 9), (3, 12), (6, 6)) * 4:
        problem, n = random_step(rng, contacts, rank), 3 * contacts + 3
        errors = [solve_in_kernel(problem, np.zeros(n), 1e-12, k)[1] for k in (1, 2, 4, 8, 16, 64)]
        assert np.all(np.diff(errors) <= 1e-12)
        assert errors[-1] < 1e-12
        if rank > n - 3:
            assert errors[2] < 1e-9  # Newton's method, once it is known what sticks and slides


# --- rows and positions ---------------------------------------------------------------------------


ROWS = np.array([[1.0, 0.5], [0.2, 1.0]])


def _linear(loops, gaps):
    """Projection of two joints with ``ROWS`` of loops or of walls; needs no mechanism."""

    def rows(q):
        return SimpleNamespace(G=ROWS, gap=gaps(q), error=loops(q), one_sided=range(len(gaps(q))))

    constraints = SimpleNamespace(units=np.ones(2), gaps=lambda model, q: (gaps(q), loops(q)))
    inertia = SimpleNamespace(response=lambda Y, shifts: np.transpose(Y) @ np.array(shifts))
    none = np.zeros(0)
    model = SimpleNamespace(body_count=0, zero_velocity=none, integrate=lambda q, shift: q + shift)

    def moved(q, farthest=9.0):
        q, A = np.array(q), ROWS @ ROWS.T
        end = GapProjection(constraints, rows(q), inertia, ROWS, A).of(model, q, none, farthest)
        return end[0], *end[2:]

    return moved


def test_loops_are_closed_where_nothing_touches_and_walls_left_where_no_loop_is_open():
    none = np.zeros(0)
    offset = np.array([0.3, -0.2])
    moved = _linear(lambda q: ROWS @ q - offset, lambda q: none)
    q, deep, opened = moved([0.0, 0.0])
    assert deep == 0
    assert opened <= CLOSED
    assert_close(q, np.linalg.solve(ROWS, offset), scale=1e6)
    moved = _linear(lambda q: none, lambda q: ROWS @ q - offset)
    q, deep, opened = moved([0.0, 0.0])
    assert deep <= CLOSED
    assert opened == 0
    assert np.max(np.abs(moved([0.0, 0.0], farthest=0.01)[0])) == pytest.approx(0.01)
    assert np.array_equal(moved([9.0, 9.0])[0], [9.0, 9.0])
    assert np.array_equal(moved([0.0, 0.0], farthest=0.0)[0], [0.0, 0.0])


def test_rows_of_one_tree_are_coupled_and_those_of_others_are_not():
    """Two chains, the second with one body more: friction at the roots, contacts at the tips."""
    builder = kt.ModelBuilder("chains")
    for name, count in (("a", 2), ("b", 3)):
        before = "base"
        for k in range(count):
            body = kt.shapes.sphere(0.1, mass=1.0)
            builder.body(f"{name}{k}", on=before, joint=kt.Revolute("y"), inertia=body)
            before = f"{name}{k}"
    m = builder.build()

    def groups(pairs, friction=(), stops=()):
        rows = SimpleNamespace(stops=[(0, i) for i in stops], friction=[(i, 1.0) for i in friction])
        known = tuple(np.array(pairs, int).reshape(-1, 2).T)
        scene = SimpleNamespace(candidates=known)
        return coupled_rows(SimpleNamespace(model=m, closes=False, joints=rows, scene=scene))

    assert groups([(0, 2), (0, 5)]) == [3, 3]
    assert groups([(0, 2), (0, 5)], friction=[0, 2]) == [4, 4]
    assert groups([(0, 2), (0, 5)], friction=[0], stops=[2, 3]) == [4, 5]
    assert groups([(0, 2), (0, 5), (1, 4)]) == [9]
    assert groups([(0, 1), (0, 2)], friction=[4]) == [1, 6]


# --- compiled steps, up to one that fails ---------------------------------------------------------


def test_steps_that_unrolled_code_did_not_solve_are_taken_by_the_engine(
    balls, monkeypatch, specialised
):
    q, qd = [0, 0.15, 1.0, 0.12], [1.0, 0, -0.5, 0]
    contact = TimeStepping(Scene(balls, friction=0.3), tolerance=1e-12)
    options = {"duration": 0.2, "dt": 0.01, "contact": contact}
    expected = kt.simulate(balls, q, qd, **options)
    is_fine, asked = ContactStepper._is_fine, []

    def fine_at_first(self, residuals, speeds):
        found = np.array(is_fine(self, residuals, speeds))
        if found.ndim and found.shape[0] > 3:
            asked.append(found.shape[0])
            found[3:] = False
        return found

    monkeypatch.setattr(ContactStepper, "_is_fine", fine_at_first)
    motion = kt.simulate(balls, q, qd, **options)
    assert asked
    assert_close(motion.q, expected.q, scale=1, ulps=1e4)
    assert_close(motion.qd, expected.qd, scale=1, ulps=1e4)
    assert_close(motion.contact.force, expected.contact.force, scale=1e4)
    monkeypatch.setattr(ContactStepper, "_is_fine", lambda self, r, v: np.zeros(r.shape[:-1], bool))
    monkeypatch.setattr(ContactStepper, "_all_fine", lambda self, residuals: False)
    batch = kt.simulate(balls, [q, q], [qd, qd], **options, store_every=4)
    assert isinstance(batch.acted, ContactStepper)
    for k in range(2):
        assert_close(batch.q[:, k], expected.q[::4], scale=1, ulps=1e4)
        assert_close(batch.contact.force[:, k], expected.contact.force[::4], scale=1e4)


# --- which of the two takes the steps -------------------------------------------------------------


def test_the_amount_of_work_decides_who_takes_the_steps(balls, monkeypatch):
    q, scene = [0, 0.1, 1.0, 0.1], Scene(balls, friction=0.3)
    options = {"dt": 0.01, "contact": TimeStepping(scene)}
    monkeypatch.setattr(tiers, "MANY", 50)
    monkeypatch.setattr(tiers, "SOME", 50)

    def tier(duration, q=q):
        motion = kt.simulate(balls, q, duration=duration, **options)
        if isinstance(motion.acted, ContactStepper):
            return "specialised"
        assert motion.report.tier == "general"
        return "general"

    assert tier(0.1, [q] * 2) == "general"
    assert tier(0.1, [q] * 2) == "general"  # 40 so far
    assert tier(0.1, [q] * 2) == "specialised"  # 60
    assert tier(2.0) == "general"  # one motion has nobody to run with: steps are those of worlds
    fresh = Scene(balls, friction=0.3)
    options["contact"] = TimeStepping(fresh)
    assert tier(0.2, [q] * 3) == "specialised"
    with kt.tier("general"):
        assert tier(1.0) == "general"
    options["contact"] = TimeStepping(Scene(balls, friction=0.3), compiled_rows=0)
    with kt.tier("specialised"):
        assert kt.simulate(balls, q, duration=0.1, **options).report.tier == "general"


def test_a_brief_simulation_compiles_nothing_for_the_robot(monkeypatch):
    model = with_ground(kt.samples.quadruped())
    made, make = [], Kernel.make_variant

    def seen(self, *given):
        made.append(self.name)
        return make(self, *given)

    monkeypatch.setattr(Kernel, "make_variant", seen)
    feet = [g for g in model.geometry if isinstance(g.shape, geometry.Sphere)]
    scene = Scene(model, [(model.geometry[-1], foot) for foot in feet], friction=0.8)
    q = model.posture("home").q
    motion = kt.simulate(model, q, duration=0.01, contact=TimeStepping(scene))
    assert motion.report.tier == "general"
    assert not any("step" in name or "force" in name for name in made)


def test_settings_without_effect_say_so(balls):
    with pytest.warns(DeprecationWarning, match=r"TimeStepping\(reach=\.\.\.\) has no effect"):
        TimeStepping(Scene(balls), reach=0.1)
