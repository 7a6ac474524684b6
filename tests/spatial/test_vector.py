import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Force, Motion, crf, crm, dyadic
from kinetree.spatial.vector import SpatialVector


@pytest.mark.covers("RBDA 2.4", "6-D Guide 1: Plücker Coordinates", by=(Motion, Force))
@pytest.mark.parametrize("kind", [Motion, Force])
def test_plucker_coordinates_are_angular_then_linear(kind, rng):
    x = rng.standard_normal(6)
    v = kind.from_array(x)
    assert np.array_equal(v.angular, x[:3])
    assert np.array_equal(v.linear, x[3:])
    assert np.array_equal(v.to_array(), x)


@pytest.mark.covers("RBDA 2.7", "6-D Guide 1: Using Spatial Vectors", by=(Motion, Force))
def test_vector_space_axioms(rng):
    for a, b, c in ((random_motion(rng) for _ in range(3)), (random_force(rng) for _ in range(3))):
        x, y, z = a.to_array(), b.to_array(), c.to_array()
        assert_close((2 * (a + b) - c / 4).to_array(), 2 * (x + y) - z / 4)
        assert_close((-a * 3).to_array(), -3 * x)
        assert_close((np.float64(2) * a).to_array(), 2 * x)
        assert_close((a - a).to_array(), type(a).zero().to_array())


@pytest.mark.covers("RBDA 2.6", "RBDA 2.7", by=SpatialVector.dot)
def test_scalar_product_is_power_and_commutes(rng):
    m, f = random_motion(rng), random_force(rng)
    assert_close(m.dot(f), m.angular @ f.angular + m.linear @ f.linear)
    assert m.dot(f) == f.dot(m)
    assert_close((2 * m).dot(3 * f), 6 * m.dot(f))


def test_scalar_product_of_columns_is_a_matrix(rng):
    S, F, f = random_motion(rng, 2), random_force(rng, 3), random_force(rng)
    assert_close(S.T @ F, S.to_array().T @ F.to_array())
    assert_close(S.T @ f, S.to_array().T @ f.to_array())
    assert S.T.T is S


def test_columns_combine_and_can_be_selected(rng):
    S, q, A = random_motion(rng, 3), rng.standard_normal(3), rng.standard_normal((3, 2))
    assert_close((S @ q).to_array(), S.to_array() @ q)
    assert_close((S @ A).to_array(), S.to_array() @ A)
    assert np.array_equal(S[1:].to_array(), S.to_array()[:, 1:])


def test_no_columns_give_the_zero_vector():
    """A fixed joint has a 6x0 subspace; its product with nothing is zero."""
    S = Motion.from_array(np.zeros((6, 0)))
    assert np.array_equal((S @ np.zeros(0)).to_array(), np.zeros(6))
    assert (S.T @ Force.zero()).shape == (0,)


@pytest.mark.covers("6-D Guide 1: Motion Constraints", by=SpatialVector.dot)
def test_powered_joint_delivers_the_power_of_its_joint_force(rng):
    """S f_J = tau for any force f_J = T_a tau + T lambda, whatever the constraint force."""
    S = random_motion(rng, 2)
    T = Force.from_array(np.linalg.svd(S.to_array().T)[2][2:].T)  # complement in the dual space
    Ta = Force.from_array(np.linalg.pinv(S.to_array()).T)
    assert_close(T.T @ S, np.zeros((4, 2)), scale=1)
    tau, qd, constraint = rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal(4)
    f_J = Ta @ tau + T @ constraint
    assert_close(S.T @ f_J, tau, scale=10)
    assert_close(f_J.dot(S @ qd), tau @ qd, scale=10)


@pytest.mark.covers("RBDA 2.1", "RBDA A.3", "6-D Guide 1: Formalities", by=SpatialVector)
class TestTypeSafety:
    """Every product that has no meaning is refused."""

    @pytest.fixture
    def things(self, rng):
        return (
            random_motion(rng),
            random_force(rng),
            random_inertia(rng),
            random_placement(rng),
        )

    def test_motion_plus_force(self, things):
        m, f, _, _ = things
        for wrong in (lambda: m + f, lambda: f + m, lambda: m - f, lambda: f - m):
            with pytest.raises(SpatialTypeError, match="live in different vector spaces"):
                wrong()
        with pytest.raises(SpatialTypeError, match="cannot add a int and a Motion"):
            m + 1

    def test_scalar_product_within_one_space(self, things):
        m, f, _, _ = things
        with pytest.raises(SpatialTypeError, match="of a Motion needs a Force, got Motion"):
            m.dot(m)
        with pytest.raises(SpatialTypeError, match="of a Force needs a Motion, got Force"):
            f.T @ f

    def test_cross_products_with_a_force_on_the_left(self, things):
        m, f, _, _ = things
        for right in (m, f):
            with pytest.raises(SpatialTypeError, match="only a motion can stand on the left"):
                f.cross(right)
        with pytest.raises(SpatialTypeError, match="crm got a Force; use crf for it"):
            crm(m, f)
        with pytest.raises(SpatialTypeError, match="crf got a Motion; use crm for it"):
            crf(m, m)
        with pytest.raises(SpatialTypeError, match="needs a Motion or a Force, got ndarray"):
            m.cross(np.zeros(6))

    def test_vector_times_vector(self, things):
        m, f, _, _ = things
        for wrong in (lambda: m * f, lambda: m * m, lambda: f * f):
            with pytest.raises(SpatialTypeError, match=r"scalar product is m\.dot\(f\)"):
                wrong()
        with pytest.raises(SpatialTypeError, match=r"write S\.T @ f"):
            m @ f

    def test_inertia_of_a_force(self, things):
        m, f, I, _ = things
        with pytest.raises(SpatialTypeError, match=r"acts on a Motion, got Force.*InverseInertia"):
            I @ f
        with pytest.raises(SpatialTypeError, match="write I @ v"):
            I * m
        with pytest.raises(SpatialTypeError, match="cannot add Motion to an inertia"):
            I + m

    def test_transforms_of_the_wrong_kind(self, things):
        m, f, I, X = things
        with pytest.raises(SpatialTypeError, match=r"forces transform by X\.star @ f"):
            X @ f
        with pytest.raises(SpatialTypeError, match=r"X\.star transforms a Force, got Motion"):
            X.star @ m
        with pytest.raises(SpatialTypeError, match=r"motions go back by X\.inverse\(\) @ m"):
            X.T @ m
        with pytest.raises(SpatialTypeError, match=r"X\.apply\(x\)"):
            X @ I
        with pytest.raises(SpatialTypeError, match=r"an inertia by X\.apply\(I\)"):
            X.star @ I
        with pytest.raises(SpatialTypeError, match="same transform on both sides"):
            X.T @ I @ X.inverse()
        for wrong in (X.apply, X.inv_apply, lambda x: X.T @ x):
            with pytest.raises(SpatialTypeError, match="how to transform a ndarray"):
                wrong(np.eye(6))

    def test_assigning_a_motion_to_a_force(self, things):
        m, _, _, _ = things
        with pytest.raises(SpatialTypeError, match="a Motion cannot be taken for a Force"):
            Force.from_array(m)

    def test_plain_matrix_times_vector(self, things):
        m, _, _, X = things
        with pytest.raises(SpatialTypeError, match=r"write matrix @ x\.to_array\(\)"):
            X.to_matrix() @ m

    def test_motion_columns_in_a_force_dyadic(self, things):
        m = things[0]
        with pytest.raises(SpatialTypeError, match="needs force columns, got Motion"):
            dyadic(Motion.from_array(m.to_array()[:, None]), np.eye(1))


@pytest.mark.parametrize("kind", [Motion, Force])
@pytest.mark.parametrize("shape", [(5,), (3, 6), (6, 2, 2), ()])
def test_wrong_number_of_coordinates_is_named(kind, shape):
    with pytest.raises(ShapeError, match=f"{kind.__name__} needs six coordinates, angular first"):
        kind.from_array(np.zeros(shape))


def test_repr_shows_kind_and_parts():
    assert repr(Motion([1, 2, 3], [4, 5, 6])) == "Motion([1, 2, 3], [4, 5, 6])"
