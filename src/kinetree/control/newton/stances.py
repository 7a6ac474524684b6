"""Makes the records of contacts: tables of a robot and its schedule, and kernels of their steps."""

from typing import Any

import numpy as np

from kinetree.contact.engine.terms import term_kernel
from kinetree.control.newton.calls import no_loop
from kinetree.control.newton.columns import MOST
from kinetree.control.newton.contacts import ContactTables, Stance, StanceKernels
from kinetree.control.tiles import pad_to_eight
from kinetree.errors import ModelError
from kinetree.functional.differentiate import differentiate
from kinetree.joints import Free, Spherical
from kinetree.model.define import kernel_of
from kinetree.model.memo import remember
from kinetree.quantities import bias_force, inverse_dynamics, jacobian, passive_force, pose
from kinetree.spatial import skew

FORCE_DERIVATIVES = differentiate(inverse_dynamics, ("q", "qd"))


def require_stances(model: Any, contacts: Any) -> None:
    """Raise ModelError for robots or contacts that phases do not support."""
    if model.is_constrained or model.couplings:
        raise ModelError(
            f"phases take trees: model {model.name!r} has loops, constraints or couplings"
        )
    for name, joint in zip(model.joint_names, model.joint[1:], strict=True):
        turns = isinstance(joint, (Free, Spherical))
        if not (joint.constant_subspace and (joint.rates_are_velocities or turns)):
            raise ModelError(
                f"phases take free and ball joints and those with a constant axis; joint {name!r} "
                f"is a {type(joint).__name__}"
            )
    for c in contacts.values():
        model.frame(c.frame)
        if len(c.turns) not in (0, 3):
            raise ModelError(
                f"contact {c.frame!r} touches along a line: phases take contacts with one point, "
                f"or three that are not on a line"
            )


def contacts_of(shooting: Any, before: int) -> ContactTables:
    """Contact tables of a problem, with its schedule."""
    if shooting.schedule is None:
        return ContactTables(before=before)
    tables = dict(_tables_of(shooting.model, shooting.schedule))
    del tables["sizes"]
    table = shooting.timetable._asdict()
    kinds = {name: np.int64 if x.dtype == bool else np.float64 for name, x in table.items()}
    tables |= {name: np.zeros(x.size, kinds[name]) for name, x in table.items()}
    found = ContactTables(before=before, **tables)
    put_timetable(found, shooting)
    return found


def put_timetable(contacts: ContactTables, shooting: Any) -> None:
    """Write a problem's timetable (closed, touching down, moving) into contact tables."""
    for name, x in shooting.timetable._asdict().items():
        getattr(contacts, name)[:] = x.reshape(-1)


def cone_mask(shooting: Any) -> np.ndarray:
    """Mask of the friction cones that apply at each knot, (steps + 1, cones)."""
    steps, schedule = shooting.steps, shooting.schedule
    if schedule is None:
        return np.zeros((steps + 1, 0), bool)
    sizes = _tables_of(shooting.model, schedule)["sizes"]
    active = np.concatenate([shooting.timetable.active, np.zeros((1, len(sizes)), bool)])
    return np.repeat(active, sizes, axis=1)


def _tables_of(model, schedule):
    """``ContactTables`` fields of a robot and its schedule of contacts, cached with the model."""
    return remember(model, ("stances", schedule.key), lambda: _tables(model, schedule.contacts))


def _tables(model, contacts):
    """Tables of a robot and its contacts, as fields of ``ContactTables``."""
    NB, parent = model.body_count, [max(p, 0) for p in model.parent]
    root = list(range(NB + 1))
    for i in range(1, NB + 1):
        root[i] = i if parent[i] == 0 else root[parent[i]]
    first = [0, *(model.v_slice[i].start for i in range(1, NB + 1)), model.nv]
    turns = [i for i in range(1, NB + 1) if isinstance(model.joint[i], (Free, Spherical))]
    found: dict[str, Any] = {
        "bodies": NB,
        "parent": parent,
        "root": root,
        "variable": first,
        "turns": len(turns),
        "turn": [first[i] for i in turns],
        "width": [model.joint[i].nv for i in turns],
    }
    lists = (
        "body",
        "size",
        "first",
        "damping",
        "point",
        "chain",
        "path",
        "owner",
        "cone",
        "offset",
    )
    found |= {name: [] for name in (*lists, "spread", "sizes")}
    found |= {name: [0] for name in ("chain_first", "path_first", "point_first", "cone_first")}
    rows = 0
    for c in contacts.values():
        rows += _add_contact(found, model, c, rows)
    found |= {"count": len(contacts), "rows": rows, "cones": len(found["offset"])}
    sizes = found.pop("sizes")
    whole = {
        n for n, kind in ContactTables.types.items() if getattr(kind, "dtype", None) == np.int64
    }
    found = {
        n: np.array(x, np.int64 if n in whole else np.float64).reshape(-1)
        if isinstance(x, list)
        else x
        for n, x in found.items()
    }
    return found | {"sizes": np.array(sizes)}


def _add_contact(found, model, c, rows):
    """Append one contact to all tables; its number of rows."""
    frame, size = model.frame(c.frame), 3 + len(c.turns)
    E, r = (np.asarray(x, float) for x in (frame.placement.E, frame.placement.r))
    bodies, i = [], frame.body
    while i > 0:
        bodies.insert(0, i)
        i = model.parent[i]
    path = [(d, i) for i in bodies for d in range(model.v_slice[i].start, model.v_slice[i].stop)]
    found["body"].append(frame.body)
    found["size"].append(size)
    found["first"].append(rows)
    found["damping"].append(c.damping)
    found["point"] += list(r + E.T @ c.points[0])
    found["path"] += [d for d, _ in path]
    found["owner"] += [i for _, i in path]
    found["path_first"].append(len(found["path"]))
    found["chain"] += bodies
    found["chain_first"].append(len(found["chain"]))
    points = c.points if size == 6 else c.points[:1]
    grasp = np.concatenate([np.vstack([np.eye(3), skew(p - points[0])]) for p in points], axis=1)
    turned = np.kron(np.eye(2), E)
    G, low, high = c.cone()
    bounds = [(g, h) for g, h in zip(G, high, strict=True) if np.isfinite(h)]
    bounds += [(-g, -h) for g, h in zip(G, low, strict=True) if np.isfinite(h) and h > 0]
    for share in np.linalg.pinv(grasp).reshape(-1, 3, 6):
        found["spread"] += list((E.T @ share @ turned).reshape(-1))
        for g, h in bounds:
            found["cone"] += list(g)
            found["offset"].append(h)
        found["cone_first"].append(len(found["offset"]))
    found["point_first"].append(len(found["cone_first"]) - 1)
    found["sizes"].append(len(points) * len(bounds))
    return size


def sizes_of_factors(b: Any) -> dict[str, int]:
    """Sizes of one step's contact factors, and of working memory."""
    c, nv = b.contacts, b.nv
    if not c.count:
        return {}
    R = c.rows
    wide = pad_to_eight(nv) + pad_to_eight(R) + pad_to_eight(max(b.size, 2 * nv))
    return {"P": nv * wide, "Q": R * wide, "Y": R * nv, "bench": max(3 * b.size, 6 * nv, 6 * R)}


def sizes_of_columns(b: Any) -> dict[str, int]:
    """Sizes of one step's contact factors by columns, and of working memory."""
    n = b.nv + b.contacts.rows
    if not b.contacts.count or n > MOST:
        return {}
    return {"L": n * n, "right": n, "df": (b.contacts.rows + 3) * b.size}


def stance_of(tied: Any, b: Any, now: Any, tried: Any, factors: dict[str, Any]) -> Stance:
    """Arrays of contact steps, and kernels tied to them."""
    c, T, nv = b.contacts, b.steps, b.nv
    if not c.count:
        return Stance(tried=_no_kernels(), now=_no_kernels())
    E, R, size = T + 1, c.rows, b.size
    forced = bool(tied.shooting.forced)
    sizes = {
        "pose": E * c.bodies * 12,
        "S": E * nv * 6,
        "F": E * nv * 6,
        "M": T * nv * nv,
        "bias": T * nv,
        "v": T * nv,
        "lines": T * nv,
        "f": T * R,
        "impulse": T * R,
        "E_q": T * nv * nv,
        "E_v": T * nv * nv,
        "f_z": T * nv * size * forced,
        "zero": nv,
        "hit_q": 2 * T * b.nq,
        "jump": 2 * T * nv,
        "I_q": 2 * T * nv * nv,
        "vel": 6 * (c.bodies + 1),
        "acc": 6 * (c.bodies + 1),
        "J": T * R * nv,
        "drift": T * R,
        "A_q": T * R * nv,
        "A_v": T * R * nv,
        "B": T * 2 * nv * nv,
        "D": T * nv * nv,
        "R": 32,
        "turned": T * 36 * c.turns,
        "spun": T * 36 * c.turns,
        "room": max(9 * nv, 108),
    }
    a = {name: np.zeros(count) for name, count in sizes.items()} | factors
    of_trial, of_now = _kernels(tied, a, tried), _kernels(tied, a, now, derivatives=True)
    a |= {
        name: np.zeros(count, np.int64) for name, count in (("row", T * R), ("live", T), ("hit", T))
    }
    return Stance(tried=of_trial, now=of_now, **a)


def _no_kernels():
    """Placeholder kernels for problems without contacts."""
    return StanceKernels(**dict.fromkeys(StanceKernels.types.keys() - {"forced"}, no_loop()))


def _kernels(tied, a, k, derivatives=False):
    """Contact kernels tied to knots ``k``, with derivatives if ``derivatives``."""
    f, b, model = tied.shooting, tied.b, tied.shooting.model
    T, nv, given = b.steps, b.nv, tied.given_inputs(k)
    q, v, E = k.q.reshape(T + 1, -1), a["v"].reshape(T, nv), T + 1
    poses = a["pose"].reshape(E, -1, 12), a["S"].reshape(E, nv, 6), a["F"].reshape(E, nv, 6)
    state = tied.times[:T], tied.h, q[:T], v
    found: dict[str, Any] = {"forced": int(f.forced)}
    found |= dict.fromkeys(StanceKernels.types.keys() - {"forced"}, no_loop())
    if not derivatives:
        found["terms"] = tied.tie(term_kernel(model, "terms"), q, *poses)
        square = (T, nv, nv)
        found["mass"] = tied.tie(kernel_of(model, "mass_matrix"), q[:T], a["M"].reshape(square))
        found["bias"] = tied.tie(kernel_of(model, "bias_force"), q[:T], v, a["bias"].reshape(T, nv))
        if f.forced:
            found["force"] = tied.tie(f.force_kernel(), *state, *given, tied.rows(k.total))
        if not b.flat:
            ends = tied.rows(a["lines"]), tied.rows(k.q_after)
            found["move"] = tied.tie(kernel_of(model, "integrate"), q[:T], *ends)
    if derivatives:
        zero = np.zeros(nv)
        call = FORCE_DERIVATIVES.bind(model, model.neutral(), zero, zero)
        kernel, unused = FORCE_DERIVATIVES.prepare_call(call).kernel, np.zeros((2 * T, nv, nv))
        by_q = {name: a[name].reshape(-1, nv, nv) for name in ("E_q", "E_v", "I_q")}
        hits = a["hit_q"].reshape(2 * T, -1), a["zero"], a["jump"].reshape(2 * T, nv)
        found["derivatives"] = tied.tie(
            kernel, q[:T], v, tied.rows(k.qdd), by_q["E_q"], by_q["E_v"]
        )
        found["impact"] = tied.tie(kernel, *hits, by_q["I_q"], unused)
        if f.forced:
            f_z = a["f_z"].reshape(T, nv, b.size)
            found["force_derivatives"] = tied.tie(f.force_derivatives_kernel(), *state, *given, f_z)
    return StanceKernels(**found)


def contact_forces(shooting: Any, b: Any, q: Any, timed: Any, xp: Any) -> dict[str, Any]:
    """Forces at the points of all contacts, and impulses, by contact name.

    ``timed`` shapes arrays by name, which are those of the library ``xp``.
    """
    c, T, model = b.contacts, b.steps, shooting.model
    f, impulse = (timed(name, T, c.rows) for name in ("f", "impulse"))
    forces, impulses = {}, {}
    for i, contact in enumerate(shooting.schedule.contacts.values()):
        at = slice(c.first[i], c.first[i] + c.size[i])
        own, impulses[contact.frame] = f[..., at], impulse[..., at]
        if c.size[i] == 3:
            forces[contact.frame] = own[..., None, :]
            continue
        R = pose(model, q[:-1], model.body_names[c.body[i]])[..., :3, :3]
        local = xp.concatenate(
            [(own[..., None, k : k + 3] @ R)[..., 0, :] for k in (0, 3)], axis=-1
        )
        spread = xp.asarray(c.spread.reshape(-1, 3, 6)[c.point_first[i] : c.point_first[i + 1]])
        forces[contact.frame] = xp.einsum("...ij,pjk,...k->...pi", R, spread, local)
    return {"forces": forces, "impulses": impulses}


def standing_controls(shooting: Any, q: np.ndarray) -> np.ndarray:
    """Motor forces that hold starts on the contacts of every step, (steps, ..., m).

    Of least squares, together with contact forces, where that does not determine them.
    """
    model, run, table = shooting.model, shooting.run, shooting.timetable
    columns, nv = list(shooting.columns), model.nv
    zero, J = np.zeros((len(q), nv)), {}
    for name, c in shooting.schedule.contacts.items():
        rows = [jacobian(model, q, name, frame="aligned", point=p)[..., 3:, :] for p in c.points]
        J[name] = np.concatenate(rows, axis=-2)
    weight, motors = (
        bias_force(model, q, zero),
        np.broadcast_to(np.eye(nv)[columns], (len(q), len(columns), nv)),
    )
    weight = weight - passive_force(model, q, zero)
    found = np.zeros((shooting.steps, len(q), len(columns)))
    for stance in np.unique(table.active, axis=0):
        on = [x for x, closed in zip(J.values(), stance, strict=True) if closed]
        A = np.swapaxes(np.concatenate([motors, *on], axis=-2), -1, -2)
        x = np.linalg.pinv(A) @ weight[..., None]
        found[(table.active == stance).all(axis=1)] = x[..., : len(columns), 0]
    return found.reshape(shooting.steps, *run.arrays.batch, len(columns))
