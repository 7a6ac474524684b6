"""See a mechanism: in the browser with sliders, as a page in one file, as pictures and films.

    kt.view(model)                                   # a page with a slider for every joint
    kt.view(trajectory)                              # its motion
    kt.viewer.save_html(trajectory, "motion.html")   # opens from disk, plays, needs no server
    kt.viewer.record(trajectory, "motion.mp4")       # no browser, no graphics card

``kt.viewer.scene(...)`` is what all of them draw, as plain arrays.
"""

from kinetree.arguments import guard_module
from kinetree.spelling import suggesting
from kinetree.viewer.motions import Beside
from kinetree.viewer.motions import scene_of as scene
from kinetree.viewer.scenes.contacts import Contacts, contacts_of
from kinetree.viewer.scenes.description import LAYERS, Arrows, Part, Scene, Surface
from kinetree.viewer.show import Page, embedded, picture, record, save_html, view

__all__ = [
    "LAYERS", "Arrows", "Beside", "Contacts", "Page", "Part", "Scene", "Surface", "contacts_of",
    "embedded", "picture", "record", "save_html", "scene", "view",
]  # fmt: skip

__getattr__ = suggesting(__name__, __all__)
guard_module(__name__)
