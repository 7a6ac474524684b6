"""Random numbers in compiled code: the same from the same seed on every processor, bit for bit.

A counter goes in and a number comes out, so that there is no state to keep in order: a world draws
from its own number, the number of its control steps, and the number of the draw (Salmon et al.,
"Parallel random numbers: as easy as 1, 2, 3", 2011). The function is a Feistel network whose rounds
take the middle of a square, as Widynski's "Squares" (2020) do,

    (L, R) ← (R, L + middle(R²) + key),

with words of 12 bits: squares then have 24, which even float32 holds exactly, in whatever order a
compiler computes them. With fewer than 12 rounds neighbouring draws are correlated.
"""

from typing import Any, NamedTuple

import numpy as np

WORD = 2**12
DRAWS = WORD
"""So many numbers a world can draw in one control step."""
_MIDDLE = 2**6
_WEYL = 2531  # golden ratio of a word: rounds have different keys
_ROUNDS = 14


def words(seed: int) -> np.ndarray:
    """Seed of any size as three floats of 12 bits each."""
    return np.random.SeedSequence(abs(int(seed))).generate_state(3) % WORD * 1.0


def _split(x):
    """Low and high 12-bit words of an integer below 2²⁴, traceable."""
    high = np.floor(x * (1 / WORD))
    return x - WORD * high, high


def uniform(seed, world, counter, draw):
    """Counter-based uniform random number in [0, 1), a multiple of 2⁻²⁴, traceable.

    Args:
        seed: three words.
        world: number of the world, below 2²⁴.
        counter: number of its control step, below 2²⁴.
        draw: number of the draw in this step, below 2¹².
    """
    left, right = _split(counter)
    keys = (*seed, *_split(world), draw)  # what differs most often comes last: the rest is shared
    for k in range(_ROUNDS):
        middle = np.floor(right * right * (1 / _MIDDLE))
        total = middle + left + keys[k % len(keys)] + (_WEYL * (k + 1)) % WORD
        left, right = right, _split(total)[0]
    return (WORD * left + right) * (1 / (WORD * WORD))


class Draws(NamedTuple):
    """The random numbers of one control step of a world; each is drawn once.

    Attributes:
        seed, world, counter: as for ``uniform``.
        taken: numbers of the draws, by what they are for.
    """

    seed: Any
    world: Any
    counter: Any
    taken: dict

    def uniform(self, what, n):
        """``n`` uniform random numbers in [0, 1) for the named use."""
        first = sum(self.taken.values())
        if what in self.taken or first + n > DRAWS:
            raise ValueError(f"{what!r} draws twice, or a step draws more than {DRAWS} numbers")
        self.taken[what] = n
        given = self.seed, self.world, self.counter
        return np.array([uniform(*given, draw) for draw in range(first, first + n)])

    def normal(self, what, n):
        """``n`` standard normal random numbers for the named use, by Box-Muller."""
        u = self.uniform(what, n + n % 2)
        found = []
        for a, b in zip(u[::2], u[1::2], strict=True):
            size = np.sqrt(-2 * np.log(1 - a))
            found += [size * np.cos(2 * np.pi * b), size * np.sin(2 * np.pi * b)]
        return np.array(found[:n])
