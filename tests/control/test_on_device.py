"""Optimization on a GPU: the same text and memory on the CPU, one lane a team."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.codegen.device import teams
from kinetree.codegen.device.running import Processor
from kinetree.codegen.machine_code import compiling
from kinetree.control import MPC, QuadraticCost, mpc, on_device, optimization, problem, tiles, trot
from kinetree.control.newton import columns, stages
from kinetree.control.newton.direction import find_knot_steps_in_team
from kinetree.errors import ModelError, ShapeError

RNG = np.random.default_rng()
HERE = Processor()


class Place:
    """In place of ``OnGpu``: NumPy arrays stand for those of a GPU."""

    def __init__(self, gpu, x, function):
        assert isinstance(gpu, Processor)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def take(self, x):
        return x

    take_each = give_each = as_given = take


@pytest.fixture
def on_gpu(monkeypatch):
    for module in (problem, mpc):
        monkeypatch.setattr(module, "gpu_of", lambda x: HERE)
        monkeypatch.setattr(module, "OnGpu", Place)
    return monkeypatch


def quadruped(steps=8):
    """A trotting quadruped with friction cones, and the arguments of its problem."""
    m = kt.samples.load("quadruped")
    feet = [f"{e}_{s}_foot" for e in ("front", "rear") for s in ("left", "right")]
    goal = m.posture("home").q.copy()
    goal[0] += 0.1
    weights = np.r_[np.full(6, 100.0), np.full(m.nv - 6, 10.0)]
    cost = QuadraticCost(q=goal, position=weights, velocity=0.1, effort=1e-2)
    given = {
        "steps": steps,
        "dt": 0.02,
        "phases": trot(feet, swing=0.08, stand=0.04, lift=0.04, ground=0.02),
        "actuated": m.joint_names[1:],
        "running": cost,
    }
    return m, given


def arm(steps=15):
    """A double pendulum on its way to a goal, within bounds."""
    m = kt.samples.load("double_pendulum")
    given = {
        "steps": steps,
        "dt": 0.04,
        "running": QuadraticCost(velocity=0.05, effort=0.01),
        "goal": np.array([0.6, -0.3]),
        "effort_limits": (np.full(2, -40.0), np.full(2, 40.0)),
        "velocity_limits": (np.full(2, -6.0), np.full(2, 6.0)),
    }
    return m, given


def hopper():
    """Two masses above the ground, on soft contact: trials roll on."""
    b = kt.ModelBuilder("hopper").body(
        "trunk", joint=kt.Prismatic("z"), inertia=kt.shapes.box(0.2, 0.1, 0.1, mass=3.0)
    )
    b.body("leg", on="trunk", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.05, mass=0.5))
    foot = kt.geometry.Geometry(2, kt.geometry.Sphere(0.05), name="foot")
    m = kt.contact.with_ground(b.build().replace(geometry=(foot,)))
    scene, smooth = kt.contact.Scene(m), kt.contact.Regularized(0.05)
    given = {
        "steps": 6,
        "dt": 0.01,
        "actuated": m.joint_names[1:],
        "contact": kt.contact.SoftContact(scene, stiffness=2e4, damping=0.5, tangential=smooth),
        "running": QuadraticCost(effort=1e-5, velocity=1e-3, q=[0.45, -0.4], position=[5.0, 1.0]),
    }
    return m, given, np.array([0.447, -0.4])


def box():
    """A body that turns and moves, with second derivatives of its steps."""
    inertia = kt.shapes.box(0.2, 0.3, 0.4, mass=1.0)
    b = kt.ModelBuilder("box").body("box", joint=kt.Free(), inertia=inertia)
    m = b.build()
    goal = m.integrate(m.neutral(), np.array([0.5, 0.3, 0.2, 0.4, 0.2, 0.1]))
    cost = QuadraticCost(q=goal, position=10.0, velocity=1.0)
    given = {"steps": 5, "dt": 0.1, "running": QuadraticCost(effort=0.01), "terminal": cost}
    return m, given | {"second_order": True}, m.neutral()


def flight():
    """A quadruped in the air: derivatives of its steps row by row."""
    m = kt.samples.load("quadruped")
    cost = QuadraticCost(q=m.posture("home").q, position=1.0, velocity=0.1, effort=1e-2)
    given = {"steps": 3, "dt": 0.02, "actuated": m.joint_names[1:], "running": cost}
    return m, given, m.posture("home").q


def starts(m, q, count):
    q = m.integrate(np.tile(q, (count, 1)), RNG.uniform(-0.02, 0.02, (count, m.nv)))
    return q, RNG.uniform(-0.02, 0.02, (count, m.nv))


def assert_same(a, b, near):
    for name in ("q", "qd", "tau", "gains", "cost", "gap", "violation", "history"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.shape == y.shape, name
        assert np.abs(x - y).max() <= near * (1 + np.abs(x).max()), name
    assert (a.converged == b.converged).all()
    assert (a.iterations == b.iterations).all()


def test_plans_with_contacts_are_those_of_the_cpu(on_gpu):
    m, given = quadruped()
    q, qd = starts(m, m.posture("home").q, 3)
    found = kt.control.optimize(m, q, qd, iterations=3, **given)
    on_gpu.undo()
    expected = kt.control.optimize(m, q, qd, iterations=3, **given)
    assert_same(expected, found, 1e-8)
    for name, forces in expected.forces.items():
        assert np.abs(forces - found.forces[name]).max() <= 1e-8 * (1 + np.abs(forces).max())


@pytest.mark.parametrize("second_order", [False, True])
def test_bounds_goals_and_second_derivatives_are_those_of_the_cpu(on_gpu, second_order):
    m, given = arm()
    q, qd = starts(m, m.neutral(), 4)
    given |= {"second_order": second_order}
    found = kt.control.optimize(m, q, qd, **given)
    on_gpu.undo()
    expected = kt.control.optimize(m, q, qd, **given)
    assert expected.converged.all()
    assert_same(expected, found, 1e-7)


def test_a_plan_is_made_again_in_the_same_memory(on_gpu, monkeypatch):
    m, given = quadruped()
    q, qd = starts(m, m.posture("home").q, 2)
    given |= {"iterations": 2, "first_iterations": 4}
    made = []
    old = on_device.IterationsOnDevice.__init__
    monkeypatch.setattr(
        on_device.IterationsOnDevice, "__init__", lambda *a: made.append(1) or old(*a)
    )
    control = MPC(m, **given)
    found = [control(t, q, qd) for t in (0.0, 0.02, 0.04, 0.06)]
    assert len(made) <= 3  # for the first plan, for the others, and for those that need more
    on_gpu.undo()
    control = MPC(m, **given)
    expected = [control(t, q, qd) for t in (0.0, 0.02, 0.04, 0.06)]
    assert np.abs(np.array(found) - expected).max() <= 1e-6 * (1 + np.abs(expected).max())


def test_a_budget_ends_the_iterations(on_gpu):
    m, given = arm()
    found = problem.TrajectoryProblem.of_arguments(m, **given).solve(m.neutral()[None], budget=0.0)
    assert 1 <= found.iterations[0] <= 2


def test_robots_with_loops_are_refused_by_name(on_gpu):
    m = kt.samples.load("four_bar")
    wanted = "optimize on a GPU takes trees.*'four-bar' has loops.*give NumPy arrays"
    with pytest.raises(ModelError, match=wanted):
        kt.control.optimize(m, m.neutral(), steps=3, dt=0.01, running=QuadraticCost(effort=1.0))


def test_starts_of_other_shapes_are_refused(on_gpu):
    m, given = arm()
    with pytest.raises(ShapeError, match=r"q0 must have shape \(\.\.\., 2\), got \(3, 5\)"):
        kt.control.optimize(m, np.zeros((3, 5)), **given)


def test_starts_on_a_gpu_stay_there(monkeypatch):
    """They are not copied to the CPU before the problem is made."""
    seen = []

    class Cupy(np.ndarray):
        """Says that it is an array of CuPy's."""

    Cupy.__module__ = "cupy._core.core"
    monkeypatch.setattr(optimization, "gpu_of", lambda x: Processor())
    monkeypatch.setattr(
        problem.TrajectoryProblem, "solve", lambda self, q0, *a, **k: seen.append(q0)
    )
    m, given = arm()
    kt.control.optimize(m, m.neutral().view(Cupy), **given)
    assert type(seen[0]) is Cupy


def test_the_text_of_a_gpu_is_read_by_llvm(on_gpu, monkeypatch):
    """With lanes that wait for each other."""
    programs = []
    launch = on_device.launchers
    monkeypatch.setattr(on_device, "launchers", lambda p, on: programs.extend(p) or launch(p, on))
    m, given = quadruped(steps=5)
    kt.control.optimize(m, m.posture("home").q[None], iterations=1, **given)
    waits = 0
    with compiling() as llvm:
        for program in programs:
            texts = program.device_texts()
            for text in texts:
                llvm.parse_assembly(text).verify()
            whole = "\n".join(texts)
            assert "invariant.load" not in whole
            waits += whole.count("call void @lanes_together()")
    assert waits > 100
    assert {type(p) for p in programs} == {teams.TeamProgram, teams.CallProgram}


@pytest.mark.parametrize("problem_of", [quadruped, arm])
def test_lanes_that_wait_for_each_other_find_the_same(on_gpu, monkeypatch, problem_of):
    """Each lane of a team is a thread; some have nothing to do in the last turns of a loop."""
    monkeypatch.setattr(HERE, "lanes", 3, raising=False)
    m, given = problem_of(steps=5)
    q, qd = starts(m, m.posture("home").q if m.postures else m.neutral(), 2)
    found = kt.control.optimize(m, q, qd, iterations=2, **given)
    on_gpu.undo()
    expected = kt.control.optimize(m, q, qd, iterations=2, **given)
    assert_same(expected, found, 1e-9 if problem_of is quadruped else 1e-7)  # goals magnify


def test_lanes_have_columns_of_steps_with_contacts(on_gpu, monkeypatch):
    """With feet that touch down: as many lanes as on a GPU have a column each."""
    monkeypatch.setattr(HERE, "lanes", 32, raising=False)
    m, given = quadruped(steps=7)
    q, qd = starts(m, m.posture("home").q, 1)
    seen, old = set(), on_device.IterationsOnDevice._launch

    def launch(self, sequence, wanted):
        seen.update(x.what for x in sequence if not stages.is_kernel(x))
        old(self, sequence, wanted)

    monkeypatch.setattr(on_device.IterationsOnDevice, "_launch", launch)
    found = kt.control.optimize(m, q, qd, iterations=1, **given)
    on_gpu.undo()
    expected = kt.control.optimize(m, q, qd, iterations=1, **given)
    assert np.abs(expected.impulses["front_left_foot"]).max() > 1e-3
    assert_same(expected, found, 1e-9)
    assert seen >= {
        columns.take_steps_by_columns,
        columns.derivatives_by_columns,
        columns.stop_by_columns,
        columns.impacts_by_columns,
    }


@pytest.mark.parametrize("problem_of", [hopper, box, flight])
def test_other_steps_are_those_of_the_cpu(on_gpu, problem_of):
    m, given, start = problem_of()
    q, qd = starts(m, start, 2)
    found = kt.control.optimize(m, q, qd, iterations=3, **given)
    on_gpu.undo()
    expected = kt.control.optimize(m, q, qd, iterations=3, **given)
    assert_same(expected, found, 1e-7)


def test_a_team_without_room_for_factors_has_them_in_the_memory_of_its_item(on_gpu, monkeypatch):
    """Then one team has all knots."""
    monkeypatch.setattr(on_device, "SHARED", 0)
    m, given = quadruped(steps=5)
    q, qd = starts(m, m.posture("home").q, 2)
    found = kt.control.optimize(m, q, qd, iterations=2, **given)
    on_gpu.undo()
    expected = kt.control.optimize(m, q, qd, iterations=2, **given)
    assert_same(expected, found, 1e-9)


def test_sizes_are_constants_of_the_code(on_gpu, monkeypatch):
    """Of stages, which need no other code for other horizons."""
    seen = []
    launch = on_device.launchers
    monkeypatch.setattr(on_device, "launchers", lambda p, on: seen.append(p) or launch(p, on))
    m, given = arm()
    q = starts(m, m.neutral(), 2)[0]
    for steps in (4, 7):
        kt.control.optimize(m, q, iterations=1, **{**given, "steps": steps})
    assert len(seen) == 1
    program = next(p for p in seen[0] if isinstance(p, teams.TeamProgram))
    assert program.constants["Batch", "nv"] == 2
    assert ("Batch", "steps") not in program.constants


@pytest.mark.parametrize("rows", [6, 4, 1])
def test_tiles_that_lanes_take_are_products_and_factors(rows):
    """The columns that one lane takes at a time, beside NumPy."""
    depth, wide, wa = 7, 16, 9
    A, B = RNG.standard_normal((depth, wa)), RNG.standard_normal((depth, wide))
    C = RNG.standard_normal((8, wide))
    found = C.copy()
    tiles.subtract_tile(
        found.reshape(-1)[4:], wide, A.reshape(-1), wa, B.reshape(-1)[4:], depth, rows
    )
    expected = C.copy()
    expected[:rows, 4:8] -= A[:, :rows].T @ B[:, 4:8]
    assert np.abs(found - expected).max() <= 1e-13

    L = np.tril(RNG.standard_normal((rows, rows))) + 4 * np.eye(rows)
    H, U = np.zeros((8, wide)), np.zeros(36)
    H[:rows, :rows] = L @ L.T
    assert tiles.factor_block(H.reshape(-1), wide, rows, U) == 0
    for solve, matrix in ((tiles.divide_column, L), (tiles.solve_column, L.T)):
        X = RNG.standard_normal((8, wide))
        found = X.copy()
        solve(found.reshape(-1)[3:], wide, rows, U)
        expected = X.copy()
        expected[:rows, 3] = np.linalg.solve(matrix, X[:rows, 3])
        assert np.abs(found - expected).max() <= 1e-12


@pytest.mark.parametrize(("problem_of", "lanes"), [(quadruped, 64), (arm, 7)])
def test_tiles_of_a_knot_stay_with_the_lanes_of_a_team(on_gpu, monkeypatch, problem_of, lanes):
    """Riccati's recursion in the memory of a team finds the plans of the CPU."""
    monkeypatch.setattr(HERE, "lanes", lanes, raising=False)
    m, given = problem_of(steps=3)
    q, qd = starts(m, m.posture("home").q if m.postures else m.neutral(), 2)
    seen, old = set(), on_device.IterationsOnDevice._launch

    def launch(self, sequence, wanted):
        seen.update(x.what for x in sequence if not stages.is_kernel(x))
        old(self, sequence, wanted)

    monkeypatch.setattr(on_device.IterationsOnDevice, "_launch", launch)
    given |= {"second_order": False}
    found = kt.control.optimize(m, q, qd, iterations=2, **given)
    on_gpu.undo()
    expected = kt.control.optimize(m, q, qd, iterations=2, **given)
    assert find_knot_steps_in_team in seen
    assert_same(expected, found, 1e-9 if problem_of is quadruped else 1e-7)  # goals magnify
