"""Contact and impact — RBDA chapter 11.

    scene = kt.contact.Scene(model)
    kt.simulate(model, q0, contact=kt.contact.TimeStepping(scene), duration=2.0)

A scene says which shapes can touch. What happens when they do is a matter of choice: rigid contact
by steps at the level of velocities (``TimeStepping``) or from event to event (``EventDriven``),
soft contact by forces (``SoftContact``), and single questions: ``forward_dynamics`` of bodies in
contact, ``impact`` of bodies that collide.
"""

from kinetree.contact import complementarity
from kinetree.contact.changes import Changes, contact_changes
from kinetree.contact.contacts import Contacts, bias, jacobian, spatial_normals, velocity
from kinetree.contact.convex_pairs import Nearest, convex_distance
from kinetree.contact.ground import with_ground
from kinetree.contact.impacts.impact import capture, impact
from kinetree.contact.impacts.result import Impact, ImpactResiduals
from kinetree.contact.pairs import Pair
from kinetree.contact.reduction import disc_corners, positive_dependence, reduced
from kinetree.contact.rigid.forward_dynamics import forward_dynamics
from kinetree.contact.rigid.one_body import BodyContact, body_contact
from kinetree.contact.rigid.result import ContactMotion, ContactResiduals
from kinetree.contact.rigid.settings import EventDriven
from kinetree.contact.rigid.states import contact_states
from kinetree.contact.scene import Candidates, Scene
from kinetree.contact.soft.force import SoftContact
from kinetree.contact.soft.normal import HuntCrossley, Linear, NormalLaw
from kinetree.contact.soft.patch import NonlinearPatch, Patch, SeriesSpring, TwoSurfaces, lumped
from kinetree.contact.soft.tangential import Dahl, Regularized, Stiction, TangentialLaw
from kinetree.contact.stepping.settings import TimeStepping

__all__ = [
    "BodyContact", "Candidates", "Changes", "ContactMotion", "ContactResiduals", "Contacts", "Dahl",
    "EventDriven", "HuntCrossley", "Impact", "ImpactResiduals", "Linear", "Nearest",
    "NonlinearPatch", "NormalLaw", "Pair", "Patch", "Regularized", "Scene", "SeriesSpring",
    "SoftContact", "Stiction", "TangentialLaw", "TimeStepping", "TwoSurfaces", "bias",
    "body_contact", "capture", "complementarity", "contact_changes", "contact_states",
    "convex_distance", "disc_corners", "forward_dynamics", "impact", "jacobian", "lumped",
    "positive_dependence", "reduced", "spatial_normals", "velocity", "with_ground",
]  # fmt: skip
