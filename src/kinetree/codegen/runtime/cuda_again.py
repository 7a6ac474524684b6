"""The same launch again and again: what follows from steps and count is kept.

For small batches, packing arguments takes longer than the launch itself.
"""

from array import array
from threading import local

__all__ = ["same_launch"]

_seen = local()


def same_launch(first, device, start, parts, block, count, given, wanted):
    """A function of input addresses, output addresses and a stream.

    Args:
        first: the same function, as a new thread needs it.
        device: number of the device.
        start: ``launchKernel`` of the driver.
        parts: for each function its address, blocks of a grid, and bytes of shared memory.
        block: threads in a block.
        count: samples.
        given: for each input with numbers its place, its size, and its step between samples.
        wanted: places of the outputs with numbers.
    """
    blank, ins, outs = [count, 0], [], []
    for k, _, step in given:
        ins.append((len(blank), k))
        blank += (0, step)
    for k in wanted:
        outs.append((len(blank), k))
        blank.append(0)
    close = all(step == size for _, size, step in given)
    packs = []

    def launch(inputs, outputs, stream):
        if device not in _seen.__dict__:
            first(inputs, outputs, stream)
            _seen.__dict__[device] = True
            return
        try:
            pack = packs.pop()
        except IndexError:  # all are in use by other threads
            pack = _Pack(blank)
        words, together = pack.words, 0
        for at, k in ins:
            words[at] = place = inputs[k]
            together |= place
        for at, k in outs:
            words[at] = place = outputs[k]
            together |= place
        words[1] = close and not together & 15
        for address, grid, shared in parts:
            start(address, grid, 1, 1, block, 1, 1, shared, stream, pack.address, 0)
        packs.append(pack)

    return launch


class _Pack:
    """The words of a launch, and where each of them is."""

    __slots__ = ("address", "places", "words")

    def __init__(self, blank):
        self.words = array("q", blank)
        first, n = self.words.buffer_info()
        self.places = array("q", range(first, first + 8 * n, 8))
        self.address = self.places.buffer_info()[0]
