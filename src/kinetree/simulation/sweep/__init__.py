"""Many runs of one question: grids, samples, threads, clusters, folders that can be resumed."""

from kinetree.simulation.sweep.result import Sweep
from kinetree.simulation.sweep.sweep import sweep

__all__ = ["Sweep", "sweep"]
