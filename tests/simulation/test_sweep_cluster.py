"""Sweeps on a Dask cluster of two processes, one of which is killed while it works."""

import os
import pickle
import signal

import distributed
import numpy as np
import pytest

import kinetree as kt

MODEL = kt.samples.double_pendulum()
OPTIONS = {"duration": 0.1, "dt": 1e-2}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


def make_run(log):
    """A function that simulates and notes that it ran; nested, so that workers get its text."""

    def swing(model, start, rng):
        import os
        import time
        import uuid

        import kinetree as kt

        time.sleep(0.01)
        motion = kt.simulate(model, start, duration=0.05, dt=1e-2)
        name = f"{start[0]:.17g}-{uuid.uuid4().hex}"
        with open(os.path.join(log, name), "w"):
            pass
        drift = motion.energy[-1] - motion.energy[0]
        return {"end": motion.q[-1], "drift": drift, "noise": rng.normal()}

    return swing


def test_a_killed_worker_loses_nothing_and_nothing_counts_twice(client, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    count, killed = 120, []
    starts = np.random.default_rng(0).uniform(-1, 1, (count, 2))

    def kill_one(done, total):
        if done >= total // 3 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = kt.sweep(
        MODEL, make_run(str(log)), samples={"start": starts}, client=client,
        folder=tmp_path / "sweep", chunk=4, progress=kill_one, seed=1,
    )  # fmt: skip
    assert killed
    assert not found.failed
    assert len(found["end"]) == count
    assert np.array_equal(found.values["start"], starts)
    assert len(list((tmp_path / "sweep").glob("chunk-*.npz"))) == count // 4

    # One result for each run, and the one that it has here: cut off, or done twice, is not seen.
    here = kt.sweep(MODEL, make_run(str(log)), samples={"start": starts[:8]}, seed=1, threads=1)
    assert np.array_equal(found["end"][:8], here["end"])
    assert np.array_equal(found["noise"][:8], here["noise"])
    assert np.max(np.abs(found["drift"])) < 1e-4
    ran = {}
    for path in log.iterdir():
        start = path.name.rpartition("-")[0]
        ran[start] = ran.get(start, 0) + 1
    assert len(ran) == count  # every run was run; those that were under way when it died, twice
    again = sum(ran.values()) - count - 8
    assert again <= 8 * 4

    before = len(list(log.iterdir()))
    again = kt.sweep(
        MODEL, make_run(str(log)), samples={"start": starts}, client=client,
        folder=tmp_path / "sweep", seed=1,
    )  # fmt: skip
    assert len(list(log.iterdir())) == before
    assert np.array_equal(again["end"], found["end"])


def test_simulations_on_a_cluster_are_those_of_here(client):
    starts = np.linspace(-1, 1, 20).reshape(10, 2)
    there = kt.sweep(MODEL, OPTIONS, samples={"q0": starts}, client=client, chunk=3)
    here = kt.sweep(MODEL, OPTIONS, samples={"q0": starts})
    assert np.array_equal(there["q"], here["q"])
    assert np.abs(there["energy"] - there["energy"][:, :1]).max() < 1e-4


def test_failures_on_workers_are_recorded(client):
    def careful(model, k):
        if k == 3:
            raise ValueError("three")
        return k

    with pytest.warns(kt.errors.SweepWarning, match="1 of 6 runs failed; run 3: ValueError: three"):
        found = kt.sweep(MODEL, careful, {"k": range(6)}, client=client, chunk=2)
    assert found["result"][found.ok].tolist() == [0, 1, 2, 4, 5]


def test_what_workers_cannot_unpack_is_explained(client):
    class Odd:
        def __reduce__(self):
            return __import__, ("a_module_that_is_not_there",)

    def uses(model, k, odd=Odd()):  # noqa: B008
        return k

    with pytest.raises(
        kt.errors.SweepError, match=r"not be done on the cluster: ModuleNotFoundError.*"
    ):
        kt.sweep(MODEL, uses, {"k": [1]}, client=client)


def test_functions_that_call_simulate_can_be_sent():
    assert pickle.loads(pickle.dumps(kt.simulate)) is kt.simulate


def test_a_client_must_be_one():
    with pytest.raises(kt.errors.SweepError, match=r"must be a dask\.distributed\.Client"):
        kt.sweep(MODEL, lambda model, k: k, {"k": [1]}, client="tcp://localhost:8786")
