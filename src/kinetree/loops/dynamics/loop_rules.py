"""Rules that solve one loop each, and the loop-closure function they make up — RBDA §8.11."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.loop_constraints import loop_signs
from kinetree.errors import LoopError, UnknownNameError
from kinetree.joints import Prismatic, Revolute, Universal
from kinetree.loops.dynamics.closure_functions import LoopClosure
from kinetree.spelling import did_you_mean

__all__ = ["Rule", "closure", "loop_chains"]


class Rule(NamedTuple):
    """The solution of one loop."""

    dependent: tuple
    """Numbers of the joints whose variables it gives."""
    solve: Callable
    """Takes ``q`` with the variables of all other joints of the loop in place; returns the
    variables of the dependent joints, one after the other."""
    margins: Callable
    """Takes the same; returns numbers that are positive where there is a solution."""


def closure(model, *rules: Rule) -> LoopClosure:
    """The loop-closure function of a model whose loops are solved by these rules, in order."""
    dependent = [j for rule in rules for j in rule.dependent]
    twice = {model.joint_names[j - 1] for j in dependent if dependent.count(j) > 1}
    if twice:
        raise LoopError(f"two rules determine joint {', '.join(sorted(twice))}; one will do")
    free = [j for j in range(1, model.body_count + 1) if j not in dependent]

    def fill(y, until=None):
        q, at = np.zeros(model.nq, dtype=np.asarray(y).dtype), 0
        for j in free:
            count = model.joint[j].nq
            q[model.q_slice[j]], at = y[at : at + count], at + count
        for rule in rules[:until]:
            values, at = rule.solve(q), 0
            for j in rule.dependent:
                count = model.joint[j].nq
                q[model.q_slice[j]], at = values[at : at + count], at + count
        return q

    def margins(y):
        return np.concatenate(
            [np.zeros(0), *(rule.margins(fill(y, until)) for until, rule in enumerate(rules))]
        )

    return LoopClosure(
        model,
        fill,
        tuple(model.joint[j] for j in free),
        tuple(model.joint_names[j - 1] for j in free),
        margins,
        lambda q: np.concatenate([np.zeros(0), *(q[model.q_slice[j]] for j in free)]),
    )


_KINDS = {"R": Revolute, "P": Prismatic, "U": Universal}


def loop_chains(model, loop, shapes):
    """The two chains of joints of a loop, in the order of ``shapes``, and the pin on each side."""
    names = [known.name for known in model.loops]
    if loop not in names:
        hint = did_you_mean(loop, names, f"there are {', '.join(names) or 'none'}")
        raise UnknownNameError(f"model {model.name!r} has no loop joint {loop!r}; {hint}")
    closing = model.loops[names.index(loop)]
    p, s = closing.predecessor, closing.successor
    signs = loop_signs(model, p, s)
    sides = [sorted(j for j, sign in signs.items() if sign == way) for way in (-1, 1)]
    pins = [closing.predecessor_placement.r, closing.successor_placement.r]
    for shape in shapes:
        for one, other in ((0, 1), (1, 0)):
            if _fits(model, sides[one], shape[0]) and _fits(model, sides[other], shape[1]):
                return sides[one], sides[other], (pins[one], pins[other])
    found = " and ".join(
        "-".join(type(model.joint[j]).__name__ for j in side) or "nothing" for side in sides
    )
    wanted = " and ".join("any" if x == "*" else x for x in shapes[0])
    raise LoopError(
        f"loop {loop!r} of model {model.name!r} does not have this closed form: it runs through "
        f"{found}, not through {wanted} (R revolute, P prismatic, U universal)"
    )


def _fits(model, joints, shape):
    if shape == "*":
        return True
    return len(joints) == len(shape) and all(
        isinstance(model.joint[j], _KINDS[kind]) for j, kind in zip(joints, shape, strict=True)
    )
