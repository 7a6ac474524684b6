"""The contacts of a scene at one configuration, with curvature; points of two shapes."""

import numpy as np

from kinetree.contact.collision.curvature import curvatures
from kinetree.contact.collision.detect import touch_table
from kinetree.contact.collision.narrow import narrow_phase
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.contacts import Contacts
from kinetree.contact.finding.pairs import names_of
from kinetree.contact.finding.shapes import Touch
from kinetree.errors import SingularError
from kinetree.quantities import kinematics

_FAR = 1e100  # [m] margins that mean everything


def touches_of(a, b, margin):
    """Points within ``margin`` of each other of two ``Placed`` shapes, as a list of ``Touch``."""
    shapes, table = placed_table(a, b), touch_table()
    swap = shapes.kind[0] > shapes.kind[1]
    n = narrow_phase(shapes, int(swap), int(not swap), min(margin, _FAR), table, 0)
    rows = zip(table.point[:n], table.normal[:n], table.gap[:n], strict=True)
    return [Touch(point, -normal if swap else normal, gap) for point, normal, gap in rows]


def find_contacts(scene, q, margin):
    """``Contacts`` of a ``Scene`` whose gap is at most ``margin``."""
    detection = scene.detection
    poses = kinematics.poses(scene.model, q)
    if not np.all(np.abs(poses) < _FAR):
        raise SingularError(
            f"contacts of {scene.model.name!r}: bodies are not at a finite place, at q = {q}"
        )
    with detection.lock:
        found = detection.find(poses, min(margin, _FAR))
        n = found.count
        turn, travel = np.zeros((2, n, 2, 3, 3))
        curvatures(detection.tables.shapes, found, turn, travel)
        first, second = found.first[:n].copy(), found.second[:n].copy()
        contacts = Contacts(
            found.bodies[:n, 0].copy(), found.bodies[:n, 1].copy(), found.point[:n].copy(),
            found.normal[:n].copy(), found.gap[:n].copy(), _names(scene, first, second),
            found.friction[:n, 0].copy(), found.restitution[:n].copy(), turn, travel,
        )  # fmt: skip
    if scene.rule in (None, "base"):  # in the order of the shapes already
        return contacts
    pairs = zip(np.minimum(first, second).tolist(), np.maximum(first, second).tolist(), strict=True)
    number = [scene.pair_numbers[pair][0] for pair in pairs]
    return contacts.chosen(np.argsort(number, kind="stable"))


def _names(scene, first, second):
    """Names of contacts: of their shapes, and a number within the pair."""
    own, numbers = names_of(scene.model).own, scene.detection.tables.numbers
    names, before, count = [], None, 0
    for pair in zip(numbers[first].tolist(), numbers[second].tolist(), strict=True):
        count = count + 1 if pair == before else 0
        before = pair
        names.append(f"{own[pair[0]]}/{own[pair[1]]}:{count}")
    return tuple(names)
