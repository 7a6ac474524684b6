"""How dents move over surfaces, and what that costs — RBDA §11.8.

A contact point moves over the surface of the predecessor also where bodies roll and nothing slides.
Moving the dent along takes work, approximated by a viscous resistance to this motion.
"""

import numpy as np

from kinetree.algorithms.dual import rate_of, value_of
from kinetree.algorithms.kinematics import base_transforms, body_velocities
from kinetree.contact.candidates import carriers, moving_shape
from kinetree.contact.shapes.table import touches
from kinetree.contact.tangents import contact_axes
from kinetree.functional.kernel import kernel
from kinetree.spatial import cross

__all__ = ["dent_jacobian"]


def dent_jacobian(scene):
    """A kernel of ``(model, q)``: velocities of dents along two tangents per ``qd``, (n, 2, nv).

    Args:
        scene: whose candidates the dents belong to.
    """
    pairs = [pair[:2] for pair in scene.pairs]

    @kernel
    def jacobian(model, q):
        columns = [_travel(model, q, e, pairs) for e in np.eye(model.nv, dtype=int)]
        return np.stack(columns, axis=-1)

    return jacobian


def _travel(model, q, qd, pairs):
    """Velocities of contact points over the surfaces of the predecessors, (n, 2)."""
    bodies = carriers(model, pairs)
    X, v = body_velocities(model, q, qd, bodies)
    X_0 = base_transforms(model, X, bodies)
    v = {i: X_0[i].inv_apply(v[i]) for i in (0, *bodies)}
    found = [np.zeros((0, 2), dtype=model.scalar_type(q))]
    for pair in pairs:
        carrier = v[pair[0].body]
        for touch in touches(*(moving_shape(g, X_0, v) for g in pair)):
            point, normal = value_of(touch.point), value_of(touch.normal)
            over = rate_of(touch.point) - carrier.linear - cross(carrier.angular, point)
            found.append((contact_axes(normal)[1:] @ over)[None])
    return np.concatenate(found)
