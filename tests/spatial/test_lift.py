"""Planar and spatial quantities mean the same in the plane."""

import pytest
from support.closeness import assert_close

from kinetree.errors import SpatialTypeError
from kinetree.spatial import Force, Motion
from kinetree.spatial.planar import PlanarForce, PlanarMotion
from kinetree.spatial.planar_inertia import PlanarInertia, lift, restrict


@pytest.mark.covers("RBDA 2.16", by=(lift, restrict))
def test_lift_and_restrict_keep_coordinates_3_4_5(rng):
    v = PlanarMotion.from_array(rng.standard_normal(3))
    f = PlanarForce.from_array(rng.standard_normal(3))
    V, F = lift(v), lift(f)
    assert type(V) is Motion
    assert type(F) is Force
    assert_close(V.to_array()[[2, 3, 4]], v.to_array())
    assert not V.to_array()[[0, 1, 5]].any()
    assert_close(restrict(V).to_array(), v.to_array())
    assert_close(restrict(F).to_array(), f.to_array())
    assert_close(V.dot(F), v.dot(f))
    S = PlanarMotion.from_array(rng.standard_normal((3, 2)))
    assert_close(restrict(lift(S)).to_array(), S.to_array())
    with pytest.raises(SpatialTypeError, match=r"lift takes a PlanarMotion, .* got PlanarInertia"):
        lift(PlanarInertia.zero())
    with pytest.raises(SpatialTypeError, match="restrict takes a spatial quantity, got Planar"):
        restrict(v)
