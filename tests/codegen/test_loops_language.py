"""What loop programs must not do, and says so by name; conditions and places."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from support.general_texts import record

import kinetree as kt
from kinetree.codegen.loops.language import (
    Chain,
    Data,
    Domain,
    NumberPlace,
    RowRange,
    input_name,
    output_name,
    place_of,
)
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.errors import TraceError
from kinetree.model.general.tables import BODIES, data_of
from kinetree.samples.random_mechanisms import random_tree

from .test_loops_lists import recorded

DOMAINS = [Domain("things", {"other": "things", "x": "n"})]


def things(other):
    """Data of things that refer to each other."""
    n = len(other)
    return Data(
        {"things": RowRange(n, {"other": np.array(other), "x": np.arange(n)})}, {"n": n}, {}
    )


@pytest.mark.parametrize(
    "name",
    ["v@i.parent[3]", "+f@i.parent[0]", "H@i.v,j.v[0,2]", "J@,j.v[5,0]", "E@[]", "n@t.new[1]"],
)
def test_places_have_one_spelling(name):
    place = place_of(name)
    assert output_name(place) == name
    assert place_of(input_name(place)) == NumberPlace(place.table, place.paths)


# --- refused while a text is recorded ------------------------------------------------------------


def carried_by_a_variable(model, q):
    total = 0
    for i in model.outward():
        total = total + q[model.q_slice[i]][0]
    return total


def from_one_body_to_another(model, q):
    before, out = np.zeros(1), model.table()
    for i in model.outward():
        out[i] = before = before + q[model.q_slice[i]][:1]
    return model.stack_rows(out, 1)


def a_row_after_its_walk(model, q):
    t, last = model.table(), None
    for i in model.outward():
        t[i], last = q[model.q_slice[i]][:1], i
    return t[last]


def never_set(model, q):
    t, out = model.table(), model.table()
    for i in model.outward():
        out[i] = t[i]
    return model.stack_rows(out, 1)


def changed_since(model, q):
    t, out = model.table(np.zeros(1)), model.table()
    for i in model.outward():
        t[i] = q[model.q_slice[i]][:1]
    for i in model.inward():
        old = 2 * t[i]
        t[i] = t[i] * t[i]
        for _ in model.above(i):
            t[i] = t[i] + old
        out[i] = t[i]
    return model.stack_rows(out, 1)


def the_parent_of_a_parent(model, q):
    t, out = model.table(np.zeros(1)), model.table()
    for i in model.outward():
        t[i] = q[model.q_slice[i]][:1]
        out[i] = t[model.parent[model.parent[i]]] if model.parent[i] != 0 else t[i]
    return model.stack_rows(out, 1)


def a_whole_vector(model, q):
    return 2 * q[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (carried_by_a_variable, "computed inside a walk is used after it or for another row"),
        (from_one_body_to_another, "computed inside a walk is used after it or for another row"),
        (a_row_after_its_walk, r"a row of a walk \(i\) is used after the walk"),
        (never_set, "row i of table t0 is read before it is set: set it in an earlier walk"),
        (changed_since, "used after the row that it was computed from has changed"),
        (the_parent_of_a_parent, "what kind of body i.parent is cannot be known"),
        (a_whole_vector, r"take those of a row, q\[model.v_slice\[i\]\], inside a walk"),
    ],
)
def test_a_text_that_is_not_a_loop_is_rejected(text, message):
    model = random_tree(4, 0, joints=[kt.Revolute("z"), kt.Revolute("x")])
    with pytest.raises(TraceError, match=message):
        record(text, ("q",), data_of(model).domains[BODIES].kinds)


def only_sliders_look_at_their_parents(model, q):
    t, out = model.table(np.zeros(1)), model.table()
    for i in model.outward():
        t[i] = q[model.q_slice[i]][:1]
        slides = isinstance(model.joint[i], kt.Prismatic)
        out[i] = t[i] + t[model.parent[i]] if slides else t[i]
    return model.stack_rows(out, 1)


def test_a_kind_that_looks_at_more_than_representatives_do_is_rejected():
    model = random_tree(6, 0, joints=[kt.Prismatic("z"), kt.Revolute("x")])
    message = "a kind of row reads table t0 at i.parent, which no representative kind does"
    with pytest.raises(TraceError, match=message):
        record(only_sliders_look_at_their_parents, ("q",), data_of(model).domains[BODIES].kinds)


# --- refused by the interpreter ------------------------------------------------------------------


def _swap(world, x):
    t, result = world.table("things", np.zeros(1)), world.result(("n",), zeros=False)
    for i in world.walk("things"):
        t[i] = x[i.span("x", 1)]
    for i in world.walk("things"):
        j = i.column("other")
        t[i], t[j] = t[i] * t[j], t[j] + 1
    for i in world.walk("things"):
        result[i.span("x", 1)] = t[i]
    return result


def test_two_paths_to_one_row_are_rejected():
    program = recorded(_swap, DOMAINS, "swap", x=("n",))
    (found,) = interpret(program, things([1, 2, 0]), np.array([2.0, 3.0, 5.0]))
    assert found.tolist() == [7.0, 20.0, 36.0]
    with pytest.raises(TraceError, match=r"swap: i and i.other are the same row of table t0, 1"):
        interpret(program, things([1, 1, 0]), np.ones(3))


def test_a_row_that_does_not_exist_is_rejected():
    program = recorded(_swap, DOMAINS, "swap", x=("n",))
    with pytest.raises(TraceError, match=re.escape("t0@i.other is row 7 of 3")):
        interpret(program, things([1, 2, 7]), np.ones(3))


def test_a_row_that_is_read_before_it_is_set_is_rejected():
    def text(world, x):
        t, result = world.table("things", np.zeros(1)), world.result(("n",), zeros=False)
        for i in world.walk("things"):
            t[i] = x[i.span("x", 1)] + t[i.column("other")]
        for i in world.walk("things"):
            result[i.span("x", 1)] = t[i]
        return result

    program = recorded(text, DOMAINS, "ahead", x=("n",))
    with pytest.raises(TraceError, match=r"row 1 of table t0 is read \(i.other, number 0\) before"):
        interpret(program, things([1, 2, 0]), np.ones(3))


# --- repetition that values decide about ---------------------------------------------------------


def test_until_a_condition_holds():
    """Newton's method for square roots, of each number as long as it takes."""

    def text(world, x, most):
        root, steps = world.table("things"), world.table("things")
        result = world.result(("n", 2), zeros=False)
        for i in world.walk("things"):
            a = x[i.span("x", 1)]
            root[i], steps[i] = a, 0 * a
            for _ in world.until("most@"):
                root[i] = (root[i] + a / root[i]) / 2
                steps[i] = steps[i] + 1
                world.stop((root[i] * root[i] - a)[0] < 1e-12)
            result[i.span("x", 1), 0] = root[i]
            result[i.span("x", 1), 1] = steps[i]
        return result

    program = recorded(text, DOMAINS, "square roots", x=("n",), most=())
    x = np.array([4.0, 1.0, 1e4])
    (found,) = interpret(program, things([0, 0, 0]), x, 50)
    np.testing.assert_allclose(found[:, 0], np.sqrt(x), rtol=1e-12)
    assert found[1, 1] == 1
    assert found[0, 1] < found[2, 1]
    (found,) = interpret(program, things([0, 0, 0]), x, 2)
    assert found[:, 1].tolist() == [2.0, 1.0, 2.0]
    kernel = LoopKernel(
        "square roots", [Argument("x", (3,)), Argument("most", ())], [Argument("out0", (3, 2))],
        SimpleNamespace(program=lambda kinds, pairs: program), things([0, 0, 0]), reference=None,
        validate=lambda arrays: None,
    )  # fmt: skip
    for most in (50.0, 2.0):
        (expected,) = interpret(program, things([0, 0, 0]), x, most)
        np.testing.assert_allclose(kernel.call(x, most), expected, rtol=1e-15)


def test_chains_are_walked_both_ways():
    def text(world, x):
        t, result = world.table("things", np.zeros(1)), world.result(("n",))
        for i in world.walk("things"):
            t[i] = x[i.span("x", 1)]
        for i in world.walk("things"):
            for j in world.walk(Chain("i.other", "other"), backwards=True):
                t[i] = 2 * t[i] + t[j]
            result[i.span("x", 1)] = t[i]
        return result

    program = recorded(text, DOMAINS, "chains", x=("n",))
    x = np.array([1.0, 10.0, 100.0])
    (found,) = interpret(program, things([-1, 0, 1]), x)
    assert found.tolist() == [1.0, 21.0, 2 * (2 * 100 + 1) + 21.0]
