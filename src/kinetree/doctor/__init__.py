"""The model doctor: what is wrong with a robot, why it matters, how to mend it."""

from kinetree.doctor.catalogue import KINDS, Kind
from kinetree.doctor.check import check
from kinetree.doctor.finding import Finding, Place

__all__ = ["KINDS", "Finding", "Kind", "Place", "check"]
