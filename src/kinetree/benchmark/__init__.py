"""kinetree against its peers: the same robot, the same states, one process, answers compared."""

from kinetree.benchmark.against_mujoco import MUJOCO_FUNCTIONS, compare_mujoco
from kinetree.benchmark.against_pinocchio import FUNCTIONS, compare
from kinetree.benchmark.measure import Result

__all__ = ["FUNCTIONS", "MUJOCO_FUNCTIONS", "Result", "compare", "compare_mujoco"]
