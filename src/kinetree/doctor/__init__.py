"""The model doctor: what is wrong with a robot, why it matters, how to fix it."""

from kinetree.arguments import guard_module
from kinetree.doctor.check import check
from kinetree.doctor.findings import KINDS, Finding, Kind, Place

__all__ = ["KINDS", "Finding", "Kind", "Place", "check"]

guard_module(__name__)
