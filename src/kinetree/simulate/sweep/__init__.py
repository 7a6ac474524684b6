"""Many runs of one question: grids, samples, threads, clusters, folders that can be resumed."""

from kinetree.simulate.sweep.result import Sweep
from kinetree.simulate.sweep.sweep import sweep

__all__ = ["Sweep", "sweep"]
