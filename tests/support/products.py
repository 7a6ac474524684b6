"""Products of rotations and of transforms in fewer operations — RBDA §A.5, Table A.4."""

import numpy as np

from kinetree.spatial import Plucker
from kinetree.spatial.vector3 import cross


def rotation_product(*factors):
    """``F₁ F₂ … Fₙ G`` of proper rotations: n (18m + 12a) + 6m + 3a.

    Two columns are carried along; the third is their cross product.
    """
    *F, G = factors
    columns = G[:, :2]
    for matrix in reversed(F):
        columns = matrix @ columns
    return np.column_stack([columns, cross(columns[:, 0], columns[:, 1])])


def compose(X1, X2):
    """``X1 @ X2`` of two general transforms: 33m + 24a — RBDA Table A.4.

    The operator takes the plain matrix product, 36m + 27a, because that is cheaper as soon as one
    of the rotations is about a coordinate axis.
    """
    return Plucker(rotation_product(X1.E, X2.E), X2.r + X2.E.T @ X1.r)
