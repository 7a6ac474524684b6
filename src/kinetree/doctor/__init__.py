"""The model doctor: what is wrong with a robot, why it matters, how to fix it."""

from kinetree.doctor.check import check
from kinetree.doctor.findings import KINDS, Finding, Kind, Place

__all__ = ["KINDS", "Finding", "Kind", "Place", "check"]
