"""The policy of the gallery that learns from depth images: on a CPU, and as a GPU would run it."""

import runpy
import sys
from pathlib import Path

import numpy as np
from support import fake_cupy
from support.backends import cuda_on_cpu

from kinetree.codegen.device.running import Processor
from kinetree.rendering import cameras

SCRIPT = Path(__file__).parents[2] / "examples" / "gallery" / "learning_from_depth.py"


class Place:
    """In place of ``OnGpu``: arrays that say they are CuPy's stay where they are."""

    def __init__(self, gpu, x):
        self.gpu = gpu

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def take(self, x):
        assert type(x) is fake_cupy.ndarray
        return np.asarray(x, dtype=float)

    def as_given(self, y):
        return np.asarray(y).view(fake_cupy.ndarray)


def test_the_same_script_learns_on_a_gpu(monkeypatch, tmp_path):
    """Steps and images by the text for GPUs, compiled for the CPU, under an interface as CuPy's."""
    learn = runpy.run_path(str(SCRIPT), run_name="example")["learn"]
    few = {"worlds": 8, "iterations": 3, "steps": 10}
    weights, rewards = learn(**few)
    launches, drawn = [], []
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    runtime = fake_cupy.runtime(launches, cuda_on_cpu(tmp_path))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", runtime)
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    monkeypatch.setattr(cameras, "gpu_of", lambda x: drawn.append(type(x)) or Processor())
    monkeypatch.setattr(cameras, "OnGpu", Place)
    there, their_rewards = learn("cuda", **few)
    sys.modules.pop("kinetree.arrays.cupy_kind", None)
    assert {*drawn} == {fake_cupy.ndarray}
    assert len(drawn) == 30  # a picture a step
    assert [name for name, *_ in launches].count("Environment.step") == 30
    assert type(there) is np.ndarray
    np.testing.assert_allclose(their_rewards, rewards, rtol=1e-4)  # steps are float32 there
    assert np.abs(weights).max() > 0.1
    assert np.abs(there - weights).max() < 1e-3 * np.abs(weights).max()


def test_it_learns():
    learn = runpy.run_path(str(SCRIPT), run_name="example")["learn"]
    _, rewards = learn(iterations=20)
    miss = np.sqrt(-np.array(rewards))
    assert miss[-5:].mean() < 0.5 * miss[0]  # 0.16 m and 0.46 m
