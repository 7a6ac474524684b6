"""One rank policy: rounding, misalignment and singular configurations are distinguished.

The reference for a misaligned linkage is the one with all digits, by Lagrange's equation.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from support import linkages
from support.closeness import EPS, assert_close

import kinetree as kt
from kinetree.algorithms.closed.forward_dynamics import constrained_acceleration, ways
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import TimeStepping
from kinetree.errors import (
    LoopError,
    MisalignmentWarning,
    ModelError,
    ShapeError,
    SimulationError,
    SingularError,
)
from kinetree.model.serialize import from_dict, to_dict
from kinetree.textbook import null_space_forms

CRANK_ANGLE, SPEED = 0.7, 1.3
MISALIGNMENTS = (0.0, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4)


def misaligned(angle, size=1.0, **options):
    """The four-bar with the axis of its coupler tilted by ``angle``, ``size`` times as large."""

    def at(X):
        return kt.Plucker(X.E, size * X.r)

    model = linkages.four_bar()
    bodies = [
        replace(b, placement=at(b.placement), inertia=_scaled(b.inertia, size))
        for b in model.bodies
    ]
    bodies[1] = replace(bodies[1], placement=kt.rotx(angle) @ bodies[1].placement)
    (loop,) = model.loops
    ends = {n: at(getattr(loop, n)) for n in ("predecessor_placement", "successor_placement")}
    return model.replace(bodies=bodies, loops=[replace(loop, **ends, **options)])


def _scaled(inertia, size):
    return kt.Inertia(inertia.mass, size * inertia.first_moment, size**2 * inertia.rotational)


def state():
    q, G, _ = linkages.explicit(linkages.four_bar_positions, CRANK_ANGLE, SPEED)
    return q, G * SPEED


def textbook():
    _, G, g = linkages.explicit(linkages.four_bar_positions, CRANK_ANGLE, SPEED)
    return G * linkages.lagrange(linkages.four_bar_positions, CRANK_ANGLE, SPEED, 0.0) + g


def quietly(function, *args, **options):
    """The result, and the warnings of misalignment."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", MisalignmentWarning)
        return function(*args, **options), [str(w.message) for w in seen]


# --- every method agrees -------------------------------------------------------------------------


def accelerations(model, q, qd):
    """By all methods; the plan as the text that is compiled."""
    tau = np.zeros(model.nv)
    found = {f"way {n}": constrained_acceleration(model, q, qd, tau, way=way)
             for n, way in enumerate(ways(model))}  # fmt: skip
    assert all(motion.health >= 1 for motion in found.values())
    found = {name: motion.qdd for name, motion in found.items()}
    for method in ("implicit", "maximal"):
        found[method] = kt.forward_dynamics(model, q, qd, tau, method=method)
    for method in ("null_space", "kkt", "range_space", "articulated", "sparse"):
        motion = kt.loops.solve(model, q, qd, tau, method=method)
        assert (motion.rank, motion.redundancy) == (2, 3)
        found[method] = motion.qdd
    return found


@pytest.mark.parametrize("angle", MISALIGNMENTS)
def test_every_method_moves_a_misaligned_linkage_like_the_one_with_all_digits(angle):
    q, qd = state()
    expected = textbook()
    model = misaligned(angle)
    found, seen = quietly(accelerations, model, q, qd)
    for qdd in found.values():
        assert_close(qdd, expected, ulps=1e4 + 10 * angle / EPS)
    reference = found.pop("implicit")
    for qdd in found.values():  # closer to each other: they leave out the same rows
        assert_close(qdd, reference, ulps=1e4 + angle**2 / EPS)
    assert len(seen) == (angle >= 1e-9)
    assert all("loop 'pin' are nearly redundant, misaligned by" in text for text in seen)


@pytest.mark.parametrize("size", [1e-4, 1e3])
@pytest.mark.parametrize("angle", [1e-6])
def test_size_does_not_matter(size, angle):
    """Lengths times ``size``, times and speeds by its root: gravity does the rest."""
    q, qd = state()
    found, seen = quietly(accelerations, misaligned(angle, size), q, qd / np.sqrt(size))
    for qdd in found.values():
        assert_close(qdd * size, textbook(), ulps=1e5 + 10 * angle / EPS)
    assert len(seen) == (angle > 0)


def test_compiled_code_batches_and_the_issue(tmp_path, monkeypatch):
    """One placement with seven digits of π/2: it used to lock without a word.

    The warning comes with compiling: code that an earlier run has left on disk does not repeat it.
    """
    monkeypatch.setenv("KINETREE_CACHE", str(tmp_path))
    tilt = 0.5 * np.pi - 1.5707963
    q, qd = state()
    model, tau = misaligned(tilt), np.zeros((3, 3))
    with pytest.warns(MisalignmentWarning, match=r"misaligned by up to .*e-08 rad"):
        found = kt.forward_dynamics(model, np.tile(q, (3, 1)), np.tile(qd, (3, 1)), tau)
    assert_close(found, np.tile(textbook(), (3, 1)), ulps=1e9)
    assert_close(kt.forward_dynamics(model, q, qd, tau[0]), found[0], ulps=100)


def test_every_constraint_counts_where_misalignment_is_zero():
    q, _ = state()
    rest = np.zeros(3)
    plain = misaligned(1e-6)
    for model in (misaligned(1e-6, misalignment=0.0), kt.loops.with_misalignment(plain, 0)):
        for method in ("implicit", "maximal"):
            assert_close(kt.forward_dynamics(model, q, rest, rest, method=method), rest, scale=1e-9)
        assert kt.loops.solve(model, q, rest, rest).rank == 3
        K = kt.loops.constraint(model, q, rest).K
        assert kt.loops.rank(K, kt.loops.scaling(model)) == 3
    allowed = kt.loops.with_misalignment(kt.loops.with_misalignment(plain, 0), None)
    assert quietly(kt.loops.solve, allowed, q, rest, rest)[0].rank == 2


def test_the_limit_is_part_of_the_model(tmp_path):
    strict = misaligned(0.0, misalignment=0.0)
    others = [misaligned(0.0), misaligned(0.0, misalignment=1e-5)]
    assert len({m.fingerprint for m in (strict, *others)}) == 3
    again = from_dict(type(strict), to_dict(strict))
    assert again.loops[0].misalignment == 0.0
    assert again.fingerprint == strict.fingerprint
    for suffix in ("toml", "urdf"):
        kt.save(others[1], tmp_path / f"linkage.{suffix}")
        assert kt.load(tmp_path / f"linkage.{suffix}").loops[0].misalignment == 1e-5
    with pytest.raises(ModelError, match=r"loop joint 'pin': misalignment is an angle from 0"):
        misaligned(0.0, misalignment=-1.0)


# --- what is not a misalignment ------------------------------------------------------------------


def test_a_singular_configuration_is_none():
    """Parallelogram of bars: flat, two constraints become one, and beside it there are two."""
    z, bar = kt.Revolute("z"), kt.Inertia.from_mass_center(1.0, (0.1, 0, 0), np.eye(3))
    model = (
        kt.ModelBuilder("parallelogram")
        .body("a", joint=z, inertia=bar)
        .body("b", on="a", joint=z, at=(1, 0, 0), inertia=bar)
        .body("c", joint=z, at=(2, 0, 0), inertia=bar)
        .loop("pin", predecessor="b", successor="c", joint=z, at=(2, 0, 0), successor_at=(1, 0, 0))
        .build()
    )
    for angle, rank in ((0.0, 1), (1e-6, 2), (1e-4, 2), (0.3, 2)):  # sine of it: a singular value
        q = np.array([angle, -angle, angle])
        K = kt.loops.constraint(model, q, np.zeros(3)).K
        assert kt.loops.rank(K, kt.loops.scaling(model)) == rank
    assert kt.loops.rank_policy(model).misalignment == 0
    assert kt.loops.rank_policy(model).explanation() == ""


def test_a_small_loop_on_a_large_arm_has_the_rank_that_it_has_alone():
    small, arm = misaligned(0.0, 5e-4), kt.ModelBuilder("arm")
    bar = kt.Inertia.from_mass_center(1.0, (1.0, 0, 0), np.eye(3))
    arm.body("boom", joint=kt.Revolute("z"), inertia=bar)
    arm.body("wrist", on="boom", joint=kt.Revolute("z"), at=(2.0, 0, 0), inertia=bar)
    for b in small.bodies:
        on = "wrist" if b.parent == 0 else small.body_names[b.parent]
        arm.body(b.name, on=on, joint=b.joint, at=b.placement, inertia=b.inertia)
    (loop,) = small.loops
    arm.loop("pin", predecessor="coupler", successor="rocker", joint=loop.joint,
             at=loop.predecessor_placement, successor_at=loop.successor_placement)  # fmt: skip
    model = arm.build()
    q = np.concatenate([[0.3, 0.4], state()[0]])
    K = kt.loops.constraint(model, q, np.zeros(5)).K
    assert kt.loops.rank(K, kt.loops.scaling(model)) == 2
    assert_close(kt.loops.scaling(model).apply(K)[:, 2:], kt.loops.scaling(small).apply(
        kt.loops.constraint(small, q[2:], np.zeros(3)).K), ulps=1e4)  # fmt: skip


def test_drift_does_not_lock_a_spatial_linkage():
    """Off the manifold by 1e-7, all constraints of Bennett's linkage look independent."""
    model = kt.samples.bennett()
    q = kt.loops.assemble(model)
    rest = np.zeros(3)
    expected = kt.forward_dynamics(model, q, rest, rest, method="implicit")
    found = kt.forward_dynamics(model, q + 1e-7, rest, rest, method="implicit")
    assert np.max(np.abs(expected)) > 0.1
    assert_close(found, expected, scale=np.max(np.abs(expected)), ulps=1e-5 / EPS)


# --- positions, mobility, doctor -----------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-4, 1e3])
def test_assembly_projection_and_mobility_leave_misaligned_constraints_alone(size):
    q, qd = state()
    exact, model = misaligned(0.0, size), misaligned(1e-6, size)
    closed, seen = quietly(kt.loops.assemble, model, q + np.array([0.1, 0, 0]))
    assert len(seen) == 1
    assert_close(closed, kt.loops.assemble(exact, q + np.array([0.1, 0, 0])), ulps=1e5)
    error = kt.loops.error(model, closed) * kt.loops.scaling(model).rows
    assert np.max(np.abs(error)) < 1e-5  # of the misalignment, and no more
    moving = kt.loops.project_velocity(model, closed, qd)
    assert_close(moving, kt.loops.project_velocity(exact, closed, qd), ulps=1e5)
    assert np.max(np.abs(moving)) > 0.1
    found = kt.loops.project_state(model, q + 1e-4, qd)
    for a, b in zip(found, kt.loops.project_state(exact, q + 1e-4, qd), strict=True):
        assert_close(a, b, ulps=1e5)
    report = kt.loops.mobility(model, closed)
    assert (report.rank, report.mobility, report.nearby) == (2, 1, (1,))


def test_a_gap_that_no_motion_changes():
    """The pin 1e-7 m out of the plane: redundant constraints, open by as much."""
    (loop,) = linkages.four_bar().loops
    out = kt.xlt(0, 0, 1e-7) @ loop.predecessor_placement
    model = linkages.four_bar().replace(loops=[replace(loop, predecessor_placement=out)])
    q, seen = quietly(kt.loops.assemble, model, state()[0])
    assert_close(q, state()[0], ulps=1e4)
    assert len(seen) == 1
    assert "1e-07 m" in seen[0]


def test_the_doctor_says_by_how_much():
    findings = kt.check(misaligned(1e-6))
    (found,) = (f for f in findings if f.code == "loop-misaligned")
    assert found.severity == "warning"
    assert "3 constraints of loop 'pin' are nearly redundant, misaligned by up to" in found.message
    assert "1 degree of freedom remains" in found.message
    assert "loop-locked" not in {f.code for f in findings}
    locked = {f.code for f in kt.check(misaligned(1e-6, misalignment=0.0))}
    assert "loop-misaligned" not in locked


# --- simulation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [1e-8, 1e-4])
def test_simulations_keep_energy_and_stay_closed_up_to_the_misalignment(angle):
    q, qd = state()
    model = misaligned(angle)
    run, seen = quietly(kt.simulate, model, q, qd, duration=0.5, dt=0.005)
    assert len(seen) == (angle > 0)
    error = np.asarray(kt.loops.error(model, run.q)) * kt.loops.scaling(model).rows
    assert np.max(np.abs(error)) <= 10 * angle + 1e-12
    energy = kt.loops.mechanical_energy(model, run.q, run.qd)
    kinetic = 0.5 * qd @ kt.mass_matrix(model.replace(loops=()), q) @ qd
    assert np.ptp(energy) < (1e-6 + angle) * kinetic
    assert np.max(np.abs(run.q[-1] - q)) > 0.1
    if angle:
        rolled = kt.rollout(model, q[None], qd[None], steps=20, dt=0.005)
        assert_close(rolled.q[-1, 0], run.q[20], ulps=1e6)


def test_contact_and_tasks_leave_misaligned_constraints_alone():
    """A ball on the coupler that a floor stops: as on the linkage with all digits."""
    ends = []
    for angle in (0.0, 1e-6):
        ball = kt.model.geometry.Geometry(2, kt.model.geometry.Sphere(0.05), name="ball")
        linkage = misaligned(angle).replace(geometry=(ball,))
        model = with_ground(linkage, point=(0, 0.06, 0), normal=(0, 1, 0), name="floor")
        contact = TimeStepping(Scene(model, friction=0.4))
        q, qd = state()
        run, _ = quietly(kt.simulate, model, q, qd, duration=0.3, dt=0.002, contact=contact)
        assert run.contact.force[:, 0, 0].max() > 1.0
        ends.append(run.q[-1])
        assert kt.task_freedom(model, q, "coupler").rank == 1
    assert_close(*ends, ulps=1e-5 / EPS)


def test_a_simulation_that_locks_names_the_cause():
    q, qd = state()
    model = misaligned(1e-6, misalignment=0.0)
    with pytest.raises(SimulationError, match=r"nearly redundant, misaligned by .*which locks the"):
        kt.simulate(model, q, qd, duration=0.1, dt=0.01)


# --- closure, in units of the loop ---------------------------------------------------------------


def test_a_tiny_linkage_that_is_open_by_half_a_link_is_rejected():
    model, rest = misaligned(0.0, 1e-3), np.zeros(3)  # links of 0.2 to 0.5 mm
    q = state()[0] + np.array([0, 0.5, 0])
    for method in (None, "implicit", "maximal"):
        options = {} if method is None else {"method": method}
        with pytest.raises(ShapeError, match=r"loop 'pin': its position error is .*of its size"):
            kt.forward_dynamics(model, q, rest, rest, **options)
    with pytest.raises(LoopError, match=r"q0 does not close loop 'pin' .*of its size"):
        kt.simulate(model, q, rest, duration=0.01, dt=0.001)
    huge = misaligned(0.0, 1e3)  # two metres of five hundred
    q = state()[0] + np.array([0, 5e-6, 0])
    assert np.max(np.abs(kt.loops.error(huge, q))) > 1e-3
    assert np.all(np.isfinite(kt.forward_dynamics(huge, q, rest, rest, method="implicit")))


@pytest.mark.parametrize("method", [None, "implicit", "maximal"])
def test_the_error_names_the_sample_that_does_not_close(method):
    model, q = misaligned(0.0), np.tile(state()[0], (2, 2, 1))
    q[1, 0, 1] += 0.1
    options = {} if method is None else {"method": method}
    with pytest.raises(ShapeError, match=r"sample \(1, 0\): q does not close loop 'pin'"):
        kt.forward_dynamics(model, q, 0 * q, 0 * q, **options)


def test_what_is_not_a_matrix_has_no_rank():
    model = misaligned(0.0)
    with pytest.raises(ModelError, match=r"ranks are those of a constraint matrix, got a model"):
        kt.loops.rank(model, state()[0])
    with pytest.raises(ShapeError, match=r"has shape \(..., nc, nv\), got \(3,\)"):
        kt.loops.independent_rows(np.ones(3))
    with pytest.raises(ShapeError, match=r"those of loops.scaling\(model\), got Model"):
        kt.loops.rank(np.eye(3), model)


# --- singular values of redundant constraints ----------------------------------------------------


def ring():
    """Six hinged links in a plane, one of them the base, closed by a hinge."""
    z, link = kt.Revolute("z"), kt.Inertia.from_mass_center(1.0, (0.5, 0, 0), 0.1 * np.eye(3))
    builder, on = kt.ModelBuilder("ring", gravity=(0, -9.81, 0)), "base"
    for n in range(5):
        builder.body(f"link{n}", on=on, joint=z, at=(float(n > 0), 0, 0), inertia=link)
        on = f"link{n}"
    builder.loop("pin", predecessor=on, successor="base", joint=z, at=(1, 0, 0),
                 successor_at=(1, 0, 0))  # fmt: skip
    return builder.build()


@pytest.mark.parametrize("make", [ring, linkages.four_bar])  # the second: 5 constraints, 3 speeds
def test_the_form_by_singular_values_counts_what_is_independent(make, rng):
    model = make()
    guess = [2 * np.pi / 3, *4 * [-np.pi / 3]] if model.nv == 5 else state()[0]
    q = kt.loops.assemble(model, guess)
    qd = kt.loops.project_velocity(model, q, rng.normal(size=model.nv))
    expected = kt.forward_dynamics(model, q, qd, np.zeros(model.nv), method="implicit")
    system = kt.loops.system_of(model)
    form = kt.loops.SVDForm(system)
    assert_close(form.acceleration(0.0, q, qd), expected, ulps=1e5)
    assert form.rank == 2
    for basis in (null_space_forms.svd, null_space_forms.qr):
        K, c = basis(system, q, qd)
        assert_close(null_space_forms.acceleration(system, 0.0, q, qd, K, c), expected, ulps=1e5)
    bare = replace(system, scaling=None)  # a system that knows of no model
    assert_close(kt.loops.SVDForm(bare).acceleration(0.0, q, qd), expected, ulps=1e5)
    with pytest.raises(ShapeError, match=r"rank must be an integer from 0 to \d"):
        kt.loops.SVDForm(system, rank=9)
    with pytest.raises(SingularError, match=r"of these 5 only 2 are"):
        null_space_forms.qr_rate(system.G(q), system.G(q))
