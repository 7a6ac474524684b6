import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.errors import ShapeError, SingularError, SpatialTypeError
from kinetree.samples import random_placement
from kinetree.spatial import Force, Motion, Screw, cross, moment_about, point_velocity, xlt
from kinetree.spatial.screw import axis_point, classify, magnitude, pitch, split, split_at_point

KINDS = [Motion, Force]


def make(kind, s, s_O):
    """From direction and moment, whichever halves these are."""
    s, s_O = np.asarray(s, dtype=float), np.asarray(s_O, dtype=float)
    return Motion(s, s_O) if kind is Motion else Force(s_O, s)


def direction_and_moment(x):
    return (x.angular, x.linear) if isinstance(x, Motion) else (x.linear, x.angular)


@pytest.mark.covers("RBDA 2.5", "6-D Guide 1: What Is a Spatial Vector", by=Screw)
@pytest.mark.parametrize("kind", KINDS)
class TestScrew:
    """One set of rules for twists and wrenches, halves swapped."""

    def test_numbers_by_hand(self, kind):
        x = make(kind, [0, 0, 2], [2, -4, 1])
        screw = Screw.of(x)
        assert screw.pitch == pitch(x) == 0.5
        assert np.array_equal(screw.point, [2, 1, 0])
        assert np.array_equal(screw.direction, [0, 0, 1])
        assert (screw.magnitude, screw.free_magnitude) == (2, 1)

    def test_free_vector(self, kind):
        x = make(kind, [0, 0, 0], [1, 2, 3])
        screw = Screw.of(x)
        assert classify(x) == "free"
        assert screw.point is None
        assert pitch(x) == np.inf
        assert screw.magnitude == 0
        assert_close(screw.free_magnitude, np.sqrt(14))
        assert_close(magnitude(x), np.sqrt(14))
        assert_close(screw.to_vector().to_array(), x.to_array())

    def test_line_vector(self, kind, rng):
        s, p = rng.standard_normal((2, 3))
        x = make(kind, s, cross(p, s))
        assert classify(x) == "line"
        assert_close(magnitude(x), np.linalg.norm(s))
        assert_close(pitch(x), 0.0, scale=1)
        nearest = p - s * (s @ p) / (s @ s)
        assert_close(axis_point(x), nearest, scale=10)

    def test_recomposition(self, kind, rng):
        x = random_motion(rng) if kind is Motion else random_force(rng)
        assert classify(x) == "general"
        assert_close(Screw.of(x).to_vector().to_array(), x.to_array(), scale=10)

    def test_zero_vector(self, kind):
        zero = kind.zero()
        assert classify(zero) == "zero"
        assert magnitude(zero) == 0
        assert np.array_equal(Screw.of(zero).to_vector().to_array(), np.zeros(6))
        with pytest.raises(SingularError, match=f"the zero {kind.__name__} has no pitch"):
            pitch(zero)
        with pytest.raises(SingularError, match=r"no definite axis: it has no direction"):
            axis_point(zero)

    def test_split_into_line_and_parallel_free_vector(self, kind, rng):
        x = random_motion(rng) if kind is Motion else random_force(rng)
        line, free = split(x)
        assert_close((line + free).to_array(), x.to_array())
        assert classify(line) == "line"
        assert classify(free) == "free"
        s, s_O = direction_and_moment(line)
        assert_close(cross(axis_point(x), s), s_O, scale=10)
        assert_close(cross(s, direction_and_moment(free)[1]), np.zeros(3), scale=10)

    def test_free_vector_has_no_line_part(self, kind):
        x = make(kind, [0, 0, 0], [1, 2, 3])
        line, free = split(x)
        assert classify(line) == "zero"
        assert free is x

    def test_split_at_a_point(self, kind, rng):
        x, p = (random_motion if kind is Motion else random_force)(rng), rng.standard_normal(3)
        line, free = split_at_point(x, p)
        assert_close((line + free).to_array(), x.to_array())
        assert classify(free) == "free"
        s, s_O = direction_and_moment(line)
        assert np.array_equal(cross(p, s), s_O)

    def test_pitch_and_magnitudes_do_not_depend_on_coordinates(self, kind, rng):
        x, X = (random_motion if kind is Motion else random_force)(rng), random_placement(rng)
        one, two = Screw.of(x), Screw.of(X.apply(x))
        assert_close(two.magnitude, one.magnitude)
        assert_close(two.free_magnitude, one.free_magnitude, scale=20)
        assert_close(two.direction, X.E @ one.direction)
        off_axis = cross(X.point(one.point) - two.point, two.direction)
        assert_close(off_axis, np.zeros(3), scale=10)

    def test_scaling_keeps_the_line(self, kind, rng):
        x = (random_motion if kind is Motion else random_force)(rng)
        one, three = Screw.of(x), Screw.of(x * 3)
        assert_close(three.point, one.point)
        assert_close(three.pitch, one.pitch)
        assert_close(three.magnitude, 3 * one.magnitude)

    def test_undefined_properties_raise_errors(self, kind, rng):
        general = (random_motion if kind is Motion else random_force)(rng)
        with pytest.raises(SingularError, match=f"a general {kind.__name__} has no magnitude"):
            magnitude(general)
        free = make(kind, [0, 0, 0], [1, 2, 3])
        with pytest.raises(SingularError, match=r"every parallel line would do"):
            axis_point(free)


def test_rounding_errors_do_not_make_a_line_general(rng):
    """A rotation about an axis, relative to a frame far away."""
    spin = Motion([0, 0, 1], [0, 0, 0])
    for _ in range(20):
        X = random_placement(rng) @ xlt(100 * rng.standard_normal(3))
        assert classify(X @ spin) == "line"
        assert classify(X @ Motion([0, 0, 0], [1, 2, 3])) == "free"


def test_length_decides_what_counts_as_infinitely_far():
    almost_free = Motion([1e-16, 0, 0], [0, 1, 0])
    assert classify(almost_free) == "free"
    assert classify(almost_free, length=1e4) == "line"


@pytest.mark.covers("RBDA 2.3", "6-D Guide 1: What Is a Spatial Vector", by=moment_about)
def test_moment_about_a_point(rng):
    f, p = random_force(rng), rng.standard_normal(3)
    assert_close(moment_about(f, p), (xlt(p).star @ f).angular)
    back = moment_about(Force(moment_about(f, p), f.linear), -p)
    assert_close(back, f.angular, scale=10)
    assert_close(moment_about(f, axis_point(f)), f.linear * pitch(f), scale=10)


@pytest.mark.covers("RBDA 2.5", by=axis_point)
def test_points_on_the_axis_move_along_it(rng):
    v = random_motion(rng)
    assert_close(point_velocity(v, axis_point(v)), pitch(v) * v.angular, scale=10)


def test_other_things_are_rejected(rng):
    with pytest.raises(SpatialTypeError, match="a screw is a Motion or a Force, got ndarray"):
        pitch(np.zeros(6))
    with pytest.raises(ShapeError, match="a single vector, got 2 columns"):
        Screw.of(random_motion(rng, 2))
    with pytest.raises(SpatialTypeError, match="needs a Force, got Motion"):
        moment_about(Motion.zero(), [0, 0, 0])
