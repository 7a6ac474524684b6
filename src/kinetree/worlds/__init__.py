"""Worlds: robots, objects and terrain put together, in rigid contact."""

from kinetree.arguments import guard_module
from kinetree.worlds.batch import Worlds
from kinetree.worlds.contacts import Contacts
from kinetree.worlds.parts import Part
from kinetree.worlds.results import Report
from kinetree.worlds.world import State, World

__all__ = ["Contacts", "Part", "Report", "State", "World", "Worlds"]

guard_module(__name__)
