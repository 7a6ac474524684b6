"""Chunks on a Dask cluster: workers may come, go and die.

Workers compute and send back; this process alone writes. A chunk whose worker died is done by
another one. One that takes its workers with it again and again is done run by run, to find which
run that is.
"""

import pickle
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import lru_cache

import numpy as np

from kinetree.errors import SweepError, need
from kinetree.simulation.sweep.work import Chunk

_MOST = 64  # chunks that wait at the scheduler, at least


def on_cluster(work, tasks, client, study):
    """Do the work of tasks, ``(number, ids, seeds, values)``; yields ``(number, chunk)``."""
    distributed = need("distributed", "a sweep with a client", "cluster")
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise SweepError(
            f"client must be a dask.distributed.Client that is not asynchronous, such as "
            f"Client('tcp://host:8786'); got {client!r}"
        )
    cluster = _Cluster(distributed, client, work, study)
    waiting, done, tasks = {}, distributed.as_completed(), iter(tasks)

    def submit():
        for number, *runs in tasks:
            future = cluster.submit(*runs)
            waiting[future] = number, runs
            done.add(future)
            return

    try:
        for _ in range(max(_MOST, 4 * sum(client.nthreads().values()))):
            submit()
        for future in done:
            number, runs = waiting.pop(future)
            submit()
            chunk = cluster.result(future)
            yield number, cluster.one_by_one(*runs) if chunk is None else chunk
    finally:  # nothing goes on when we are interrupted
        client.cancel(list(waiting))


class _Cluster:
    """Sends runs to a cluster and fetches their results."""

    def __init__(self, distributed, client, work, study):
        self.distributed, self.client, self.study = distributed, client, study
        self.sent = need("cloudpickle", "a sweep with a client", "cluster").dumps(work)

    def submit(self, ids, seeds, values):
        """A future for the results of some runs."""
        return self.client.submit(_do, self.study, self.sent, ids, seeds, values, pure=False)

    def result(self, future):
        """The results, or None if every worker that tried died of it."""
        try:
            return future.result()  # dask computes it again where the worker that had it is gone
        except self.distributed.KilledWorker:
            return None
        except self.distributed.client.CancelledError as error:
            raise SweepError(
                f"the cluster dropped some runs ({error}): was it closed or restarted? Chunks that "
                f"were finished are kept if a folder was given; call again"
            ) from error
        except SweepError:
            raise
        except Exception as error:
            raise SweepError(
                f"the runs could not be done on the cluster: {type(error).__name__}: {error}. Its "
                f"workers need kinetree, and whatever the function imports, in the versions of here"
            ) from error

    def one_by_one(self, ids, seeds, values):
        """The runs of a chunk that killed its workers, each as a task of its own."""
        parts = []
        for k in range(len(ids)):
            alone = slice(k, k + 1)
            row = {name: column[alone] for name, column in values.items()}
            chunk = self.result(self.submit(ids[alone], seeds[alone], row))
            if chunk is None:
                chunk = Chunk(np.asarray(ids[alone]), np.asarray(seeds[alone]))
                chunk.failures[int(ids[k])] = "every worker that tried it died"
            parts.append(chunk)
        return Chunk.joined(parts)


def _do(study, sent, ids, seeds, values):
    """Some runs, on a worker."""
    return _work(study, sent)(ids, seeds, values)


@lru_cache(maxsize=4)
def _work(study, sent):
    """The work as it was sent; kept, and with it what is compiled for its model."""
    return pickle.loads(sent)


# --- Chunks on the threads of this process -------------------------------------------------------


def on_threads(work, tasks, threads):
    """Do the work of tasks, ``(number, ids, seeds, values)``; yields ``(number, chunk)``.

    The first is done alone, so that what must be compiled is compiled once. Results come in the
    order in which they are ready.
    """
    tasks = iter(tasks)
    for number, *runs in tasks:
        yield number, work(*runs)
        break
    if threads == 1:
        for number, *runs in tasks:
            yield number, work(*runs)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="kinetree-sweep")
    try:
        yield from _in_pool(pool, work, tasks, 2 * threads)
    finally:  # whoever interrupts us need not wait for what has not begun
        pool.shutdown(wait=True, cancel_futures=True)


def _in_pool(pool, work, tasks, most):
    waiting, is_over = {}, False
    while waiting or not is_over:
        while not is_over and len(waiting) < most:
            task = next(tasks, None)
            if task is None:
                is_over = True
            else:
                waiting[pool.submit(work, *task[1:])] = task[0]
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            yield waiting.pop(future), future.result()
