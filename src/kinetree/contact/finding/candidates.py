"""Potential contacts in closed form: a fixed list of points, to compile into steps and rollouts.

Gap, point and normal of each are formulas in ``q``. Their rates come from the same formulas on
dual numbers, so that curvature needs no separate formula: RBDA (11.29), (11.33).
"""

import numpy as np

from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.dual import Dual, rate_of, value_of
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
)
from kinetree.contact.contacts import contact_axes, contact_axes_rate
from kinetree.contact.finding.closed_forms import touches
from kinetree.contact.finding.shapes import Placed
from kinetree.spatial import cross


def positions(model, q, pairs):
    """Gaps (n,), points (n, 3) and axes (n, 3, 3) of the potential contacts of pairs.

    Args:
        model: the mechanism.
        q: configuration, (nq,), of any kind of number.
        pairs: each a ``Pair``, with the lower body first.
    """
    bodies = _carriers(model, pairs)
    X_0 = base_transforms(model, joint_transforms(model, q, bodies)[0], bodies)
    found = [touch for pair in pairs for touch in _touches(pair, _place, X_0)]
    gaps, points, axes = (
        [part(t) for t in found]
        for part in (lambda t: t.gap, lambda t: t.point, lambda t: contact_axes(t.normal))
    )
    return _stack(model, q, ((), (3,), (3, 3)), gaps, points, axes)


def velocities(model, q, qd, pairs):
    """Gaps (n,) and relative velocities (n, 3) of the potential contacts of pairs."""
    X_0, v = _body_velocities(model, q, qd, pairs)
    gaps, speeds = [], []
    for pair in pairs:
        v_ps = v[pair[1].body] - v[pair[0].body]
        for touch in _touches(pair, _place, X_0):
            gaps.append(touch.gap)
            there = v_ps.linear + cross(v_ps.angular, touch.point)
            speeds.append(contact_axes(touch.normal) @ there)
    return _stack(model, q, ((), (3,)), gaps, speeds)


def point_velocities(model, q, qd, pairs):
    """Tangential velocities (n, 2) of contact points over the predecessors' surfaces."""
    X_0, v = _body_velocities(model, q, qd, pairs)
    found = [np.zeros((0, 2), dtype=model.scalar_type(q))]
    for pair in pairs:
        carrier = v[pair[0].body]
        for touch in _touches(pair, _moving, X_0, v):
            point, normal = value_of(touch.point), value_of(touch.normal)
            over = rate_of(touch.point) - carrier.linear - cross(carrier.angular, point)
            found.append((contact_axes(normal)[1:] @ over)[None])
    return np.concatenate(found)


def origin_speeds(model, q, qd, shapes):
    """Squared speeds of the origins of moving shapes, as a list [m²/s²]."""
    X_0, v = _body_velocities(model, q, qd, [(g,) for g in shapes])
    found = []
    for g in shapes:
        origin = _place(g, X_0).origin
        speed = v[g.body].linear + cross(v[g.body].angular, origin)
        found.append(speed @ speed)
    return found


def _body_velocities(model, q, qd, pairs):
    """Base transforms and base-frame velocities of the bodies that move pairs of shapes."""
    bodies = _carriers(model, pairs)
    X, v = body_velocities(model, q, qd, bodies)
    X_0 = base_transforms(model, X, bodies)
    return X_0, {i: X_0[i].inv_apply(v[i]) for i in (0, *bodies)}


def _through_gears(found, at):
    """Contact rows and biases in independent variables: ``J G`` and ``bias + J g``."""
    gaps, rows, biases = found
    return gaps, rows @ at.G, biases + rows @ at.g


@for_all_joints(_through_gears)
def terms(model, q, qd, pairs):
    """Gaps (n,), Jacobians (n, 3, nv) and biases (n, 3) of the potential contacts of pairs.

    The relative velocity along normal and tangents is ``J qd``, its rate ``J qdd + bias``.
    """
    bodies = _carriers(model, pairs)
    X, v, a = body_accelerations(model, q, qd, model.zero_velocity, bodies=bodies)
    S = joint_transforms(model, q, bodies)[1]
    X_0 = base_transforms(model, X, bodies)
    moving = [0, *bodies]
    v = {i: X_0[i].inv_apply(v[i]) for i in moving}
    a = {i: X_0[i].inv_apply(a[i]) for i in moving}
    columns = {i: X_0[i].inv_apply(S[i]) for i in bodies}
    gaps, rows, biases = [], [], []
    for pair in pairs:
        p, s = (g.body for g in pair[:2])
        v_ps, a_ps = v[s] - v[p], a[s] - a[p]
        joints = {i: (i in model.support[s]) - (i in model.support[p]) for i in bodies}
        for touch in _touches(pair, _moving, X_0, v):
            point, point_rate = value_of(touch.point), rate_of(touch.point)
            normal, normal_rate = value_of(touch.normal), rate_of(touch.normal)
            axes = contact_axes(normal)
            there = a_ps.linear + cross(a_ps.angular, point) + cross(v_ps.angular, point_rate)
            speed = v_ps.linear + cross(v_ps.angular, point)
            gaps.append(value_of([touch.gap])[0])
            rows.append(_rows(model, q, axes, point, columns, joints))
            biases.append(axes @ there + contact_axes_rate(normal, normal_rate) @ speed)
    return _stack(model, q, ((), (3, model.nv), (3,)), gaps, rows, biases)


def _carriers(model, pairs):
    """Ascending numbers of all bodies whose joints move the shapes of pairs."""
    return sorted({i for p in pairs for g in p[:2] if g.body for i in model.support[g.body]})


def _touches(pair, place, *motion):
    """Nearest points of a pair's shapes as ``Touch``, gaps reduced by the pair's margin."""
    found, margin = touches(*(place(g, *motion) for g in pair[:2])), getattr(pair, "margin", 0)
    return [t._replace(gap=t.gap - margin) for t in found] if margin else found


def moving_touches(pair, X_0, v):
    """Nearest points of a pair's shapes with time derivatives, as dual numbers.

    ``X_0`` and ``v`` are transforms and velocities, in base coordinates, of bodies by number.
    """
    return _touches(pair, _moving, X_0, v)


def _place(geometry, X_0):
    """``Placed`` shape of a geometry in the world, from its body's transform."""
    X = geometry.placement @ X_0[geometry.body]
    return Placed(geometry.shape, X.E.T, X.r)


def _moving(geometry, X_0, v):
    """``Placed`` shape in the world with its rates, as dual numbers; fixed shapes without."""
    still = _place(geometry, X_0)
    if geometry.body == 0:
        return still
    w = v[geometry.body].angular
    origin_rate = v[geometry.body].linear + cross(w, still.origin)
    return Placed(
        geometry.shape, _dual(still.axes, cross(w, still.axes)), _dual(still.origin, origin_rate)
    )


def _dual(values, rates):
    """Array of dual numbers from arrays of values and rates."""
    pairs = zip(np.ravel(values), np.ravel(rates), strict=True)
    result = np.empty(np.size(values), dtype=object)
    result[:] = [Dual(a, b) for a, b in pairs]
    return result.reshape(np.shape(values))


def _rows(model, q, axes, point, columns, joints):
    """Jacobian (3, nv) of a contact point along three axes."""
    J = np.zeros((3, model.nv), dtype=model.scalar_type(q))
    for i, sign in joints.items():
        if sign and model.joint[i].nv:
            there = columns[i].linear - cross(point, columns[i].angular)
            J[:, model.v_slice[i]] = sign * (axes @ there)
    return J


def _stack(model, q, shapes, *lists):
    """Arrays from lists of values, of the model's number type even where empty."""
    dtype = model.scalar_type(q)
    return tuple(
        np.array(part) if part else np.zeros((0, *shape), dtype)
        for part, shape in zip(lists, shapes, strict=True)
    )
