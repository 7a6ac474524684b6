"""Can the numbers be trusted? What rounding, data and geometry do to a model — RBDA §10.1, §10.2.

print(kt.health(model, q, qd))
"""

from kinetree.accuracy.causes import Cause
from kinetree.accuracy.report import Health, health

__all__ = ["Cause", "Health", "health"]
