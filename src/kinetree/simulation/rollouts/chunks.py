"""A batch in pieces that stay in the cache, on several threads.

Every sample goes through the same compiled code whatever piece it is in and whatever thread takes
it, so that results depend on neither.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from kinetree.codegen.runtime.threads import MINIMUM_PER_THREAD, threads

__all__ = ["over_chunks"]

_CACHE = 2**18  # bytes that one step of a piece reads and writes


def over_chunks(function, size, numbers, steps):
    """Call ``function`` on slices that together are the whole batch, with NumPy's warnings off.

    Args:
        function: takes a slice.
        size: samples in the batch.
        numbers: that one step of one sample reads and writes.
        steps: of every sample.
    """
    fitting = max(_CACHE // (8 * max(numbers, 1)), 16)
    pieces = -(-size // fitting)
    workers = min(threads(), size * steps * numbers // MINIMUM_PER_THREAD, size)
    if workers > 1:
        pieces = -(-max(pieces, workers) // workers) * workers  # the same number for each
    cuts = np.linspace(0, size, pieces + 1).astype(int)
    slices = [slice(a, b) for a, b in pairwise(cuts) if b > a]

    def quietly(part):
        with np.errstate(all="ignore"):  # checks in the code see what matters, and name the sample
            function(part)

    if workers <= 1 or len(slices) == 1:
        for part in slices:
            quietly(part)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="kinetree-rollout") as pool:
        for job in [pool.submit(quietly, part) for part in slices]:
            job.result()
