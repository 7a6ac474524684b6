"""Worlds: robots, objects and terrain put together, in rigid contact."""

from kinetree.arguments import guard_module
from kinetree.simulation.results.state import State
from kinetree.worlds.batch import Worlds
from kinetree.worlds.contacts import Contacts
from kinetree.worlds.parts import Part
from kinetree.worlds.results import Report
from kinetree.worlds.world import World

__all__ = ["Contacts", "Part", "Report", "State", "World", "Worlds"]

guard_module(__name__)
