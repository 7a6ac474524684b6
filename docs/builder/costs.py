"""Cost of an algorithm on sample robots: additions and multiplications, counted."""

from functools import cache
from importlib import import_module

import numpy as np

import kinetree as kt
from kinetree import spatial
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.expr.counting import count, count_operations
from kinetree.model.define import kernel_of
from kinetree.samples import random_inertia, random_placement

ROBOTS = ("double_pendulum", "ur5", "panda", "quadruped", "humanoid")
LOOPS = ("four_bar", "five_bar", "excavator", "delta", "stewart")


@cache
def _robot(name):
    return kt.samples.load(name)


def table(text, arguments, public=None, *, robots="trees", given=None) -> str:
    """A Markdown table: as written, and as compiled, for each robot.

    Args:
        text: the function of the algorithm, such as ``algorithms.rnea.inverse_dynamics``.
        arguments: names of its arrays.
        public: name of the quantity in the catalogue, if it is there.
        robots: ``trees`` or ``loops``.
        given: what else it takes: ``every other force``, ``the last body`` or
            ``a floating base``.
    """
    module, _, name = text.rpartition(".")
    function = getattr(import_module(f"kinetree.{module}"), name)
    names = ROBOTS if robots == "trees" else LOOPS
    size = "degrees of freedom" if robots == "trees" else "variables"
    columns = ["robot", size, "as written", *(["compiled"] if public else [])]
    lines = [_row(columns), _row(["---"] * len(columns))]
    for robot in names:
        model = _robot(robot)
        own, options = _GIVEN[given](model)
        sizes = {"q": (model.nq,), "v_0": (6,)}
        inputs = [Argument(a, sizes.get(a, (model.nv,))) for a in arguments]

        def run(*x, model=model, own=own):
            named = dict(zip(arguments, x, strict=True))
            if "v_0" in named:
                named["v_0"] = kt.Motion.from_array(named["v_0"])
            return _numbers(function(model, **named, **own))

        traced = trace(run, inputs)
        cells = [f"`{robot}`", model.nv, _count(cheapest([traced]))]
        if public:
            cells.append(_count(kernel_of(model, public, **options).program))
        lines.append(_row(cells))
    return "\n".join(lines)


def _every_other_force(model):
    options = {"free": tuple(range(1, model.body_count + 1, 2))}
    return options, options


def _last_body(model):
    last = model.body_names[-1]
    return {"frame": model.frame(last), "reference": "world"}, {"name": last, "reference": "world"}


def _floating_base(model):
    inertia = random_inertia(np.random.default_rng(0))
    return {"I_0": inertia, "a_g": kt.Motion([0, 0, 0], model.gravity)}, {}


# Options of an algorithm, and of the quantity in the catalogue.
_GIVEN = {
    None: lambda model: ({}, {}),
    "every other force": _every_other_force,
    "the last body": _last_body,
    "a floating base": _floating_base,
}


def operations(rows) -> str:
    """A Markdown table of single operations on general quantities: name and Python expression."""
    rng = np.random.default_rng(0)
    v, m = (kt.Motion.from_array(rng.normal(size=6)) for _ in range(2))
    f = kt.Force.from_array(rng.normal(size=6))
    X, I = random_placement(rng), random_inertia(rng)
    A = rng.normal(size=(6, 6))
    IA = spatial.ArticulatedInertia.from_matrix(A + A.T)
    quantities = {"v": v, "m": m, "f": f, "X": X, "I": I, "IA": IA}
    lines = [_row(["operation", "in Python", "cost"]), _row(["---"] * 3)]
    for name, expression in rows:
        code = compile(expression, "pages.toml", "eval")
        used = [k for k in quantities if k in code.co_names]

        def value(*x, used=used, code=code):
            return eval(code, {**vars(spatial), **dict(zip(used, x, strict=True))})

        found = count(value, *(quantities[k] for k in used))
        lines.append(_row([name, f"`{expression}`", found]))
    return "\n".join(lines)


def joints(expressions) -> str:
    """A Markdown table of what ``jcalc`` costs, sines and cosines aside."""
    rng = np.random.default_rng(0)
    lines = [_row(["joint", "degrees of freedom", "`jcalc`"]), _row(["---"] * 3)]
    for expression in expressions:
        joint = eval(expression, dict(vars(kt.joints)))
        q, qd = rng.normal(size=joint.nq), rng.normal(size=joint.nv)
        lines.append(_row([f"`{expression}`", joint.nv, count(joint.jcalc, q, qd)]))
    return "\n".join(lines)


def _numbers(result):
    """All numbers of a result, which may be of spatial vectors and transforms, in one array."""
    if result is None:
        return np.zeros(0, dtype=object)
    if isinstance(result, (list, tuple)):
        return np.concatenate([np.zeros(0, dtype=object), *map(_numbers, result)])
    if hasattr(result, "E"):
        return np.concatenate([np.ravel(result.E), np.ravel(result.r)])
    if hasattr(result, "to_array"):
        result = result.to_array()
    return np.ravel(np.asarray(result, dtype=object))


def _row(cells):
    return f"| {' | '.join(map(str, cells))} |"


def _count(program):
    found = count_operations(program.graph, program.roots)
    products = found.multiplications + found.divisions + found.square_roots
    return f"{products:,}m + {found.additions:,}a"
