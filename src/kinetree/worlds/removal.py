"""Removing parts and rules of contact from a world between steps."""

from typing import TYPE_CHECKING

import numpy as np

from kinetree.model.pruning import without_bodies
from kinetree.worlds.carried import Carried, Key

if TYPE_CHECKING:
    from kinetree.worlds.core import WorldCore
    from kinetree.worlds.pieces import Piece


def remove_part(world: "WorldCore", name: str) -> None:
    """Remove a part from an unassembled world, with all contact rules about it."""
    piece, inside = world._parts.pop(name)
    if inside is None:
        gone = {piece.name, *(piece.prefix + x for x in _names(piece))}
        world._pieces.remove(piece)
    else:
        before = {*_names(piece)}
        _cut(world, piece, name, inside)
        gone = before - {*_names(piece)}
    world._pairs = [p for p in world._pairs if not gone & {p.first, p.second}]
    for key in [x for x in world._copies if name == x or name.startswith(f"{x}_")]:
        del world._copies[key]  # its name can be given again


def _names(piece):
    """Names of the bodies, links and shapes of a piece."""
    shapes = piece.shapes if piece.model is None else piece.model.geometry
    bodies = () if piece.model is None else piece.model.body_names[1:]
    return [*bodies, *(x for g in shapes for x in (g.name, g.link) if x)]


def _cut(world, piece, name, inside):
    """Remove some bodies, or base shapes, from a piece that consists of several parts."""
    old, gone = piece.model, {*inside}
    base = [
        k
        for k, g in enumerate(old.geometry)
        if g.body == 0 and (g.name == name if not gone else g.link.startswith(f"{name}."))
    ]
    shapes = [k for k, g in enumerate(old.geometry) if g.body not in gone and k not in base]
    stays = [i for i in range(1, old.body_count + 1) if i not in gone]
    trimmed = old.replace(geometry=[g for k, g in enumerate(old.geometry) if k not in base])
    model = without_bodies(trimmed, gone)
    for what, slices in (("q", old.q_slice), ("qd", old.v_slice)):
        at = np.concatenate([np.zeros(0, int), *(np.r_[slices[i]] for i in stays)]).astype(int)
        setattr(piece, what, getattr(piece, what)[at])
        piece.start = tuple(
            x[at] if k == ("q", "qd").index(what) else x for k, x in enumerate(piece.start)
        )
    piece.model = model
    number = {i: new for new, i in enumerate(stays, start=1)}
    for other, (of, numbers) in list(world._parts.items()):
        if of is piece and numbers is not None:
            world._parts[other] = of, tuple(number[i] for i in numbers)
    if world._carried is not None:
        renumber(world._carried, piece, number, {k: new for new, k in enumerate(shapes)})


def renumber(
    carried: Carried, piece: "Piece", bodies: dict[int, int], shapes: dict[int, int]
) -> None:
    """Renumber a piece's bodies and shapes in carried solver memory, dropping removed ones."""
    of = id(piece)

    def renew(key: Key, numbers) -> Key:
        return (of, numbers.get(key[1], -1 - key[1])) if key[0] == of else key

    carried.contacts = [
        (renew(a, shapes), renew(b, shapes), *kept) for a, b, *kept in carried.contacts
    ]
    carried.rows = {renew(key, bodies): x for key, x in carried.rows.items()}
    carried.trees = {
        renew(key, bodies): (sleeps, renew(pile, bodies), calm)
        for key, (sleeps, pile, calm) in carried.trees.items()
    }
    for name in ("stops", "dry"):
        old = getattr(carried, name)
        setattr(carried, name, {(*renew(key[:2], bodies), *key[2:]): x for key, x in old.items()})


def drop_rules(world: "WorldCore", first: list[str], second: list[str]) -> None:
    """Remove contact rules between two groups of links and shapes from the world."""
    pairs = {frozenset((a, b)) for a in first for b in second}
    world._pairs = [p for p in world._pairs if frozenset((p.first, p.second)) not in pairs]
    for piece in world._pieces:
        rules = () if piece.model is None else piece.model.contact_pairs
        ends = [{piece.prefix + x for x in (p.first, p.second)} for p in rules]
        kept = [p for p, both in zip(rules, ends, strict=True) if frozenset(both) not in pairs]
        if piece.model is not None and len(kept) < len(rules):
            piece.model = piece.model.replace(contact_pairs=kept)
