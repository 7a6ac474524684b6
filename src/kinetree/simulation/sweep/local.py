"""Chunks on the threads of this process."""

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

__all__ = ["on_threads"]


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
