"""See a mechanism: in the browser with sliders, as a page in one file, as pictures and films.

    kt.view(model)                                   # a page with a slider for every joint
    trajectory.view()                                # its motion
    kt.viewer.save_html(trajectory, "motion.html")   # opens from disk, plays, needs no server
    kt.viewer.record(trajectory, "motion.mp4")       # no browser, no graphics card

``kt.viewer.scene(...)`` is what all of them draw, as plain arrays.
"""

from kinetree.viewer.motions import scene_of as scene
from kinetree.viewer.outputs import Page, embedded, picture, record, save_html
from kinetree.viewer.scene.contacts import Contacts
from kinetree.viewer.scene.description import LAYERS, Arrows, Part, Scene, Surface
from kinetree.viewer.scene.touching import contacts_of
from kinetree.viewer.show import view

__all__ = [
    "LAYERS",
    "Arrows",
    "Contacts",
    "Page",
    "Part",
    "Scene",
    "Surface",
    "contacts_of",
    "embedded",
    "picture",
    "record",
    "save_html",
    "scene",
    "view",
]
