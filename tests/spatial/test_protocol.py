"""What transforms other than ``Plucker`` accept, and what they refuse."""

import pytest

from kinetree.errors import SpatialTypeError
from kinetree.samples import random_inertia
from kinetree.spatial import Force, Motion
from kinetree.spatial.axial_screw import scrx, scrz
from kinetree.spatial.planar import PlanarMotion, Xpln
from kinetree.spatial.transform import CoordinateTransform


@pytest.mark.covers("RBDA A.3", by=CoordinateTransform)
def test_mixed_up_kinds_are_rejected(rng):
    X, Y = scrz(0.3, 0.1), scrx(0.2, 0.1)
    v, f = Motion.from_array(rng.standard_normal(6)), Force.from_array(rng.standard_normal(6))
    with pytest.raises(SpatialTypeError, match=r"X\.star @ f"):
        X @ f
    with pytest.raises(SpatialTypeError, match=r"X\.star transforms a Force, got Motion"):
        X.star @ v
    with pytest.raises(SpatialTypeError, match=r"X\.T takes a Force back, got Motion; motions go"):
        X.T @ v
    with pytest.raises(SpatialTypeError, match="same transform on both sides"):
        X.T @ random_inertia(rng) @ Y
    with pytest.raises(SpatialTypeError, match="AxialScrew does not apply to PlanarMotion"):
        X.apply(PlanarMotion.zero())
    with pytest.raises(SpatialTypeError, match="ScrewProduct does not apply to PlanarMotion"):
        X @ PlanarMotion.zero()
    with pytest.raises(SpatialTypeError, match="PlanarTransform does not apply to AxialScrew"):
        Xpln(0.1, (0, 0)) @ X


def test_a_transform_must_say_how_it_applies():
    with pytest.raises(TypeError, match="abstract"):
        CoordinateTransform()
