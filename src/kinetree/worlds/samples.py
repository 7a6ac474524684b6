"""Numbers of each sample of a batch of worlds: masses, sizes, friction, restitution, gains."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kinetree.errors import ModelError, ShapeError
from kinetree.integration.refusals import BATCH_MASSES, BATCH_SIZES
from kinetree.model import Model
from kinetree.model.geometry import SOLIDS, Geometry, Solid, Surface
from kinetree.spatial import Inertia, Plucker

_ALL = Surface(contype=-1, conaffinity=-1)


def columns_of(world, what, given, n):
    """Parameter values (n,) of the batch by part name; "" stands for all parts."""
    if what == "mass" and not isinstance(given, Mapping):
        raise ModelError("mass of a batch must be given by part, such as {'box': masses}")
    named = given if isinstance(given, Mapping) else {"": given}
    found = {}
    for name, values in named.items():
        part = name and world[name].name
        values = np.asarray(values, dtype=float)
        if values.shape not in ((), (n,)) or not np.all(values >= 0):
            raise ShapeError(
                f"{what} of {name or 'a batch'!r} must be {n} numbers that are not negative, one "
                f"for each world, or one for all; got {given!r}"
            )
        found[part] = np.broadcast_to(values, (n,))
    return found


def sample_model(world, columns, k) -> Model:
    """Model of batch sample ``k`` with its individual masses, sizes and coefficients."""
    model = world.model
    geometry, inertia = list(model.geometry), dict(enumerate(model.inertia))
    actuators = list(model.actuators)
    for what, given in columns.items():
        for name, values in given.items():
            x = float(values[k])
            bodies, own = _of_part(world, name)
            if what in ("friction", "restitution"):
                for i in own:
                    surface = replace(geometry[i].surface or _ALL, **{what: x})
                    geometry[i] = replace(geometry[i], surface=surface)
            elif what == "mass":
                total = sum(float(inertia[i].mass) for i in bodies)
                inertia |= {i: inertia[i] * (x / total) for i in bodies}
            elif what == "gains":
                numbers = world[name].actuators if name else range(len(actuators))
                for i in numbers:
                    a = actuators[i]
                    gain, bias = ([c * x for c in y] for y in (a.gain, a.bias))
                    actuators[i] = replace(a, gain=tuple(gain), bias=tuple(bias))
            else:
                for i in own:
                    geometry[i] = _grow(geometry[i], x)
                inertia |= {i: _grown_inertia(inertia[i], x) for i in bodies if i}
    named = {model.body_names[i]: I for i, I in inertia.items() if i and I is not model.inertia[i]}
    return model.replace(geometry=geometry, inertia=named, actuators=actuators)


def _grown_inertia(I, factor):
    """Inertia of a body whose lengths scale by ``factor`` at constant mass."""
    return Inertia(I.mass, I.first_moment * factor, I.rotational * factor**2)


def _grow(g: Geometry, factor: float) -> Geometry:
    """Shape with all sizes scaled by ``factor``; an error unless it is a solid."""
    if not isinstance(g.shape, Solid):
        known = ", ".join(sorted(kind.__name__ for kind in SOLIDS))
        raise BATCH_SIZES.of(
            f"the size of a batch, which is for solids with sizes ({known}),",
            f"shape {g.name!r}, which is a {type(g.shape).__name__}",
        )
    placement = Plucker(g.placement.E, g.placement.r * factor)
    return replace(g, shape=g.shape.grown(factor), placement=placement)


def shape_arrays(worlds):
    """Shape parameters that differ between worlds, by field, (n, shapes, ...)."""
    tables = worlds._batch.engine.tables
    names = {
        "friction": ("friction",),
        "restitution": ("restitution",),
        "size": ("size", "radius", "box", "thin", "place"),
    }
    found = {}
    for what, fields in names.items():
        for field in fields if what in worlds.columns else ():
            first = getattr(tables.shapes, field)
            array = found[field] = np.tile(first, (len(worlds), *[1] * first.ndim))
            for part, values in worlds.columns[what].items():
                _, own = _of_part(worlds.world, part)
                at = np.flatnonzero(np.isin(tables.numbers, own)) if part else np.arange(len(first))
                values = values.reshape(-1, *[1] * (first.ndim))
                if what == "friction":
                    array[:, at, 0] = values[..., 0]
                elif what == "restitution":
                    array[:, at] = values
                elif field == "place":
                    array[:, at, 3::4] *= values
                else:
                    array[:, at] *= values
    return found


def inertias_of(worlds):
    """Inertia parameters of all bodies in all worlds, (n, bodies, 10)."""
    model, numbers = worlds.model, worlds._batch.engine.numbers
    others = {"gravity compensation": model.gravity_compensation, "a fluid": model.fluid_forces}
    baked = [what for what, found in others.items() if found]
    if not numbers or baked:
        what = baked[0] if numbers else "a joint class without parameters()"
        raise BATCH_MASSES.of("masses and sizes of a batch", f"{model.name!r}, which has {what}")
    found = np.tile(numbers["inertia"], (len(worlds), 1, 1))
    for what in ("mass", "size"):
        for name, values in worlds.columns.get(what, {}).items():
            at = [
                i - 1
                for i in (worlds.world[name].numbers if name else range(1, model.body_count + 1))
            ]
            if what == "mass":
                found[:, at] *= (values / found[0, at, 0].sum())[:, None, None]
            else:
                found[:, at, 1:4] *= values[:, None, None]
                found[:, at, 4:] *= values[:, None, None] ** 2
    return found


def _of_part(world, part):
    """Numbers of the bodies and shapes of a part in the model; "" stands for all."""
    model = world.model
    bodies = {*world[part].numbers} if part else {*range(model.body_count + 1)}
    found = enumerate(model.geometry)
    return bodies, [i for i, g in found if g.body in bodies or (part and g.name == part)]
