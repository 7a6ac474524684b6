"""Fewer contacts that can exert the same forces — RBDA §11.6, Fig. 11.7.

A contact whose normal, as a spatial force, is a non-negative combination of the others may go: the
others can exert whatever it can. Of a polygon on a plane the corners remain, of an edge the ends.
A disc, or a curved line of contact, needs infinitely many; then ``accuracy`` says how far what is
kept may fall short. With friction nothing is lost either, where normals and coefficients agree:
friction at a point of a polygon is a combination of friction at its corners.
"""

import math

import numpy as np

from kinetree.algorithms.closed.least_forces import nonnegative_least_squares
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.contact.contacts import Contacts, spatial_normals
from kinetree.errors import ModelError

_EXACT = 1e-10  # part of the size of a set of contacts


def positive_dependence(vectors: ArrayLike, k: int) -> tuple[Array, float]:
    """How row ``k`` depends on the others: coefficients >= 0 of them, and what is left over.

    Row ``k`` is positively dependent on the others where nothing is left over — RBDA §11.6. The
    coefficient of the row itself is zero.

    Args:
        vectors: (n, m).
        k: which row.
    """
    vectors = np.asarray(vectors, dtype=float)
    others = np.delete(np.arange(len(vectors)), k)
    coefficients = np.zeros(len(vectors))
    coefficients[others], rest = _combined(vectors[others], vectors[k])
    return coefficients, rest


def _combined(vectors, target):
    """Coefficients >= 0 of rows that come nearest to a vector, and the distance that is left."""
    x = nonnegative_least_squares(vectors.T, target)
    return x, float(np.linalg.norm(x @ vectors - target))


def reduced(contacts: Contacts, accuracy: float | None = None) -> Contacts:
    """The contacts that the others cannot replace, in their order.

    Every pair of bodies is looked at by itself. Of contacts that are equally good, those with the
    smallest gap are kept.

    Args:
        contacts: ``Contacts``.
        accuracy: how far [m] the line of a force that is given up may lie from what the contacts
            that are kept can exert; None: no farther than rounding errors.
    """
    if accuracy is not None and not 0 <= accuracy < math.inf:
        raise ModelError(f"accuracy must be a length in metres, zero or positive, got {accuracy!r}")
    pairs = np.column_stack([contacts.predecessor, contacts.successor])
    kept: list[int] = []
    for pair in np.unique(pairs, axis=0):
        group = np.flatnonzero(np.all(pairs == pair, axis=1))
        kept += _reduced_group(contacts, group, accuracy)
    return contacts.chosen(np.array(sorted(kept), dtype=int))


def _reduced_group(contacts, group, accuracy):
    """Numbers of the contacts of one pair of bodies to keep."""
    group = group[np.argsort(np.asarray(contacts.gap)[group], kind="stable")]
    vectors, size = _lengths(contacts.chosen(group))
    kept = list(range(len(group)))
    if accuracy is not None and accuracy > _EXACT * size:
        kept = _covering(vectors, accuracy)
    for k in reversed(list(kept)):  # the largest gap first
        others = [j for j in kept if j != k]
        if _combined(vectors[others], vectors[k])[1] <= _EXACT * size:
            kept = others
    return group[kept].tolist()


def _lengths(contacts):
    """Normals as vectors of six lengths: moments about the middle, forces times the size."""
    middle = contacts.point.mean(axis=0)
    moved = contacts._replace(point=contacts.point - middle)
    size = max(float(np.abs(moved.point).max()), 1e-9)
    return spatial_normals(moved) * np.repeat([1.0, size], 3), size


def _covering(vectors, accuracy):
    """Enough vectors for all others to be within ``accuracy`` of what they span: worst first."""
    kept, rests = [0], np.full(len(vectors), np.inf)
    rests[0] = 0
    while (worst := int(np.argmax(rests))) not in kept and rests[worst] > accuracy:
        # What is left over only shrinks as more are kept: old values are bounds.
        rests[worst] = _combined(vectors[kept], vectors[worst])[1]
        if rests[worst] >= rests.max() and rests[worst] > accuracy:
            kept.append(worst)
            rests[worst] = 0
    return kept


def disc_corners(radius: float, accuracy: float) -> int:
    """Corners of the regular polygon in a circle that falls short of it by ``accuracy`` [m]."""
    if not accuracy > 0:
        raise ModelError(f"accuracy must be positive, got {accuracy!r}: a disc has no corners")
    if accuracy >= radius / 2:
        return 3
    return math.ceil(math.pi / math.acos(1 - accuracy / radius))
