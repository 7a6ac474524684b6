"""The steps of one world on a GPU: what a thread does."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.engine.advance import Call, advance, end_motion


@procedure
def take_turn(c: Call, steps: int) -> int:
    """Take the remaining steps of a world's motion on the device; 0, or an overflow code.

    Its state and memory are then in its row, ``WorkerState.step`` steps after the start, or where
    they were if that is negative.
    """
    a, b, t = c.parts, c.motions, c.worker
    b.steps = steps
    t.world = t.loaded = 0
    t.end = 1
    t.step = -1
    t.left = steps
    code = advance(a, b, t)
    if code < 0 and t.step >= 0:
        end_motion(a, b, t)
    return code
