"""Linear models tangent to the manifold: the five-bar of Spencer's examples."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import allowed_velocity

import kinetree as kt
from kinetree.algorithms.closed import joint_space
from kinetree.control import equilibrium
from kinetree.control.equilibria import load_on_freedoms
from kinetree.loops.linear.linearization import linearize_in_coordinates
from kinetree.loops.linear.velocity_basis import MotionState
from kinetree.textbook.manifold_linearization import linearize_on_manifold

FIVE_BAR = kt.samples.five_bar()
HOME = np.radians([120.0, np.degrees(np.arccos(2 / 3)), -np.degrees(np.arccos(2 / 3)), -120.0])
REST = np.zeros(4)
CHARTS = (None, "tangent", ["link1_joint", "link2_joint"], ["link1_joint", "link4_joint"])


def angles(q):
    """Absolute directions of the links [deg]."""
    return np.degrees(np.cumsum(q) + HOME)


def posture(directions):
    return np.diff(np.radians(directions) - HOME, prepend=0.0)


RESTS = {
    "stable": {
        "directions": (275.88390, -74.63356, 74.63356, -275.88390),
        "energy": -120.63339,
        "forces": (-4.04391, -49.05),
        "eigenvalues": (3.37326j, -3.37326j, 3.96891j, -3.96891j),
    },
    "unstable": {
        "directions": (275.30199, 98.30133, -65.02826, -299.40021),
        "energy": None,
        "forces": None,
        "eigenvalues": (3.04077, -3.04077, 3.99237j, -3.99237j),
    },
}


def same_numbers(found, expected, tolerance):
    """Whether two sets of complex numbers agree, in any order."""
    found, expected = list(found), list(expected)
    assert len(found) == len(expected)
    for x in expected:
        distances = [abs(y - x) for y in found]
        assert min(distances) < tolerance, (x, found)
        found.pop(int(np.argmin(distances)))


@pytest.mark.covers("Spencer 4.1", by=linearize_on_manifold)
@pytest.mark.parametrize("which", RESTS)
def test_eigenvalues_at_rest_do_not_depend_on_the_chart(which):
    m, expected = FIVE_BAR, RESTS[which]
    q, tau = equilibrium(m, posture(np.round(expected["directions"], 1)), actuated=[])
    assert np.abs(angles(q) - expected["directions"]).max() < 6e-6
    assert not np.any(tau)
    if expected["energy"] is not None:
        assert abs(kt.potential_energy(m, q) - expected["energy"]) < 6e-6
        _, basis = load_on_freedoms(m, q)
        lam = MotionState(m, q, REST, REST, REST).multipliers(basis)  # of the other sign and order
        assert np.abs(np.sort(-lam) - np.sort(expected["forces"])).max() < 6e-6
    for independent in CHARTS:
        linear = linearize_in_coordinates(m, q, REST, REST, independent=independent)
        same_numbers(linear.eigenvalues, expected["eigenvalues"], 6e-6)
        assert np.abs(linear.rate).max() < 1e-12
    for projector in ("orthogonal", "coordinates"):
        full = linearize_on_manifold(m, q, REST, REST, projector=projector)
        assert np.abs(full.rate).max() < 1e-12
        # four zeros, in pairs that rounding splits like a square root
        same_numbers(np.linalg.eigvals(full.A), [*expected["eigenvalues"], 0, 0, 0, 0], 1e-5)


@pytest.fixture
def moving(rng):
    q = np.zeros(4)  # the start of the second example
    return q, allowed_velocity(FIVE_BAR, q, rng, 2.0)


@pytest.mark.covers("Spencer 4.1", by=linearize_on_manifold)
@pytest.mark.parametrize("projector", ["orthogonal", "coordinates"])
@pytest.mark.parametrize("independent", CHARTS[1:3])
def test_projectors_and_invariants(projector, independent, moving):
    q, qd = moving
    options = {"independent": independent, "projector": projector}
    A, _, P, T, H, f = linearize_on_manifold(FIVE_BAR, q, qd, REST, **options)
    assert_close(P @ P, P, ulps=1e4)
    assert_close(H @ P, np.zeros((4, 8)), ulps=1e4, scale=10)
    assert np.linalg.matrix_rank(P) == 4
    assert_close(A @ P, A, ulps=1e4)
    assert_close(P @ T, T, ulps=1e4)
    assert_close(H @ f, np.zeros(4), ulps=1e4, scale=100)  # (4.5): the motion stays on it
    if projector == "orthogonal":
        expected = np.eye(8) - H.T @ np.linalg.solve(H @ H.T, H)
        assert_close(P, expected, ulps=1e4)


@pytest.mark.covers("Spencer 4.1", by=linearize_on_manifold)
def test_a_chart_of_its_own_has_the_same_eigenvalues_and_zeros(moving):
    q, qd = moving
    spectra = []
    for independent in CHARTS[2:]:
        options = {"independent": independent, "projector": "coordinates"}
        full = linearize_on_manifold(FIVE_BAR, q, qd, REST, **options)
        reduced = linearize_in_coordinates(FIVE_BAR, q, qd, REST, independent=independent)
        same_numbers(np.linalg.eigvals(full.A), [*reduced.eigenvalues, 0, 0, 0, 0], 1e-5)
        spectra.append(np.sort_complex(reduced.eigenvalues))
    assert np.abs(spectra[0] - spectra[1]).max() > 0.01  # two charts differ, off equilibrium


@pytest.mark.covers("Spencer 4.1", by=linearize_on_manifold)
def test_what_stabilisation_adds_is_off_the_manifold(moving):
    """[Df] of a stabilised equation has four more roots at -1/T; [Df] Π has zeros."""
    m, h = FIVE_BAR, 1e-6
    stable = RESTS["stable"]
    q, _ = equilibrium(m, posture(np.round(stable["directions"], 1)), actuated=[])

    def derivatives(q, qd, T):
        def f(x):
            options = {"stabilization": T, "closure_tolerance": np.inf}
            return np.concatenate(
                [x[4:], joint_space.forward_dynamics(m, x[:4], x[4:], REST, **options)]
            )

        x = np.concatenate([q, qd])
        return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(8)], axis=-1)

    extra = np.linalg.eigvals(derivatives(q, REST, 0.1))
    same_numbers(extra, [*stable["eigenvalues"], -10, -10, -10, -10], 0.05)
    q, qd = moving
    full = linearize_on_manifold(m, q, qd, REST)
    for T in (None, 0.1):  # whatever f does off the manifold
        assert np.abs(derivatives(q, qd, T) @ full.projector - full.A).max() < 1e-7


@pytest.mark.covers("Spencer 4.1", by=linearize_on_manifold)
def test_derivatives_of_forward_dynamics_agree_along_the_manifold(moving, rng):
    q, qd = moving
    tau = rng.standard_normal(4)
    derivative = kt.differentiate(kt.forward_dynamics, wrt=("q", "qd", "tau"))
    dq, dqd, dtau = derivative(FIVE_BAR, q, qd, tau)
    full = linearize_on_manifold(FIVE_BAR, q, qd, tau)
    assert_close(np.hstack([dq, dqd]) @ full.tangent, (full.A @ full.tangent)[4:], ulps=1e5)
    assert_close(dtau, full.B[4:], ulps=1e4)
    along = full.tangent[:, 0]
    push = kt.jvp(kt.forward_dynamics, wrt=("q", "qd"))
    found = push(FIVE_BAR, q, qd, tau, tangents=(along[:4], along[4:]))
    assert_close(found, (full.A @ along)[4:], ulps=1e5)
    w = rng.standard_normal(4)
    pull = kt.vjp(kt.forward_dynamics, wrt="tau")
    assert_close(pull(FIVE_BAR, q, qd, tau, cotangent=w), w @ dtau, ulps=1e4)


def test_unknown_projectors_are_rejected():
    with pytest.raises(kt.UnknownNameError, match="'orthogonal' or 'coordinates', got 'oblique'"):
        linearize_on_manifold(FIVE_BAR, REST, REST, REST, projector="oblique")
