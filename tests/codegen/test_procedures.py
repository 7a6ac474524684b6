"""Procedures: machine code against the meaning that Python gives the same text."""

import copy
import ctypes
import math
import pickle
import re
from contextlib import contextmanager
from fractions import Fraction
from math import atan2, ceil, copysign, exp, floor, hypot, isfinite, isnan, sin
from types import FunctionType

import numpy as np
import pytest

from kinetree.codegen.cache import Store, open_store
from kinetree.codegen.keys import kept_code
from kinetree.codegen.machine_code import compiling
from kinetree.codegen.procedures import (
    Procedure,
    ProcedureTable,
    cross,
    dot,
    improving,
    invoke,
    lane_sum,
    lanes,
    local,
    native,
    on_disk,
    procedure,
    record,
    sqrt,
    unroll,
    vector,
    view,
    workspace,
)
from kinetree.codegen.procedures.writer import module_text
from kinetree.contact.newton.equations import momentum
from kinetree.errors import ShapeError, TraceError

ROOM = 4
TABLE = np.array([[1, 2], [3, 4]])
WEIGHTS = (0.5, 0.25)


@record
class Inner:
    scale: float
    place: "float[3]"


@record
class Points:
    """Points with weights."""

    count: int
    x: "float[:, 3]"
    kind: "int[:]"
    total: float
    found: bool
    inner: Inner
    pool: "float[:]"
    limit: float = 1e-3


def _points(rng, n=7):
    return Points(
        count=n,
        x=rng.standard_normal((n, 3)),
        kind=rng.integers(0, 5, n),
        inner=Inner(scale=1.5, place=rng.standard_normal(3)),
        pool=rng.standard_normal(60),
    )


def _same(f, make, seeds=20):
    """The machine code gives what Python gives, numbers and memory."""
    for seed in range(seeds):
        a, b = make(np.random.default_rng(seed)), make(np.random.default_rng(seed))
        got, expected = f(*a), f.python(*b)
        if expected is None:
            assert got is None
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13)
            for g, e in zip(np.atleast_1d(got), np.atleast_1d(expected), strict=True):
                assert np.isscalar(g) == np.isscalar(e)
        for x, y in zip(a, b, strict=True):
            _same_memory(x, y)


def _same_memory(x, y):
    if isinstance(x, np.ndarray):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)
    elif hasattr(x, "types"):
        for name in x.types:
            _same_memory(getattr(x, name), getattr(y, name))
    else:
        assert x == pytest.approx(y, rel=1e-13, abs=1e-13)


@procedure
def _numbers(n: int, x: float, yes: bool) -> "(float, int, bool)":
    s = 0
    for i in range(n):
        if i == 3:
            continue
        s += i * x
        if s > 100:
            break
    k = 0
    for i in range(n, -n, -3):
        k += i
    while k % 7 != 0 and k > -50:
        k -= 1
    t = s if yes else -1
    t = t + (n // 2) * 1.0 + n % 3 + (-n) // 3 + (-n) % 5 + (-n) // 4
    m = (n << 3) | 5
    m = m ^ (n & 3) ^ (m >> 1)
    t = t / 3 + max(x, 0.5) - min(x, s, 2.0) + abs(-x) + abs(-n)
    return t, m + k + int(x * 10), 0 < n <= 5 or not yes


def test_numbers():
    _same(_numbers, lambda r: (int(r.integers(0, 20)), r.standard_normal(), bool(r.integers(2))))


@procedure
def _own_names(r: float, native: int, index: int, layout: "float[2]") -> "(float, int)":
    """Arguments with names that what calls it might use itself."""
    return r + layout[1], native - index


def test_arguments_may_have_any_name():
    layout = np.array([1.0, 2.0])
    assert _own_names(0.5, 7, 3, layout) == (2.5, 4)
    assert _own_names(r=0.5, native=7, index=3, layout=layout) == (2.5, 4)


@procedure
def _arrays(p: Points, i: int, out: "float[:, 3]") -> float:
    """All kinds of expressions on small arrays."""
    d = p.x[i] - p.inner.place
    R = view(p.pool, 3 * i, 3, 3)
    e = R.T @ d + 2 * (d @ R) - R @ d / 3
    out[0] = e
    out[1] = cross(d, e)
    out[1] += d
    out[1, 2] *= 2
    M = R @ R.T
    row = M[1]
    row[0] += 1.0
    out[2] = M[0] * row
    first = M[:2, 1:]
    s = first[0, 1] + first[1, 0] + R[:, 1] @ d
    c = local("float", ROOM, 3)
    for k in range(ROOM):
        c[k] = d * k
    c[1, :] = -c[2] * 0.3
    c[2, 0:2] = c[3, 1:]
    tail = view(p.pool, i)
    tail[0] = 5.0
    block = view(p.pool, 20, 2, 4)
    block[1] = 0.0
    best = d
    for k in range(3):
        w = c[k] + best
        if dot(w, w) > dot(best, best):
            best = w
        s += WEIGHTS[k % 2] * TABLE[1, k % 2] * TABLE[0][1]
    return s + dot(d, e) + best[0] + vector(1, s, 3)[1] + len(d)


def test_arrays():
    _same(_arrays, lambda r: (_points(r), int(r.integers(7)), np.zeros((3, 3))))


@procedure
def _parts(p: Points, i: int, n: int, out: "float[:]"):
    """Parts of arrays whose length is known at run time."""
    out[:n] = 1.0
    out[1:n] -= 2.0 * p.pool[1:n]
    out[i : i + n] += p.pool[:n] / (i + 1.0)
    p.x[1:n] += p.inner.place
    p.x[:n, 2] = p.x[:n, 0] = out[i : i + n]
    p.kind[:n] = p.kind[:n] + i


def test_parts_of_arrays():
    _same(_parts, lambda r: (_points(r), *map(int, r.integers(0, 7, 2)), r.standard_normal(14)))


@procedure
def _halved(x: float, out: "float[:]") -> float:
    out[0] = x
    return x / 2


@procedure
def _squared(x: float, out: "float[:]") -> float:
    out[1] = x
    return x * x


@procedure
def _as_it_is(x: float, out: "float[:]") -> float:
    out[2] = x
    return x


BY_NUMBER = ProcedureTable({0: _halved, 3: _squared, 4: _halved}, _as_it_is)
BY_PAIR = ProcedureTable({(1, 2): _halved, (2, 1): _squared}, _as_it_is)


@procedure
def _chosen(k: int, x: float, out: "float[:]") -> float:
    return BY_NUMBER[k](x, out) + 10.0 * BY_PAIR[k // 2, k % 3](x + 1.0, view(out, 3))


def test_procedures_are_chosen_by_numbers():
    """A call through a table is that of the procedure which the number, or a pair, chooses."""
    _same(_chosen, lambda r: (int(r.integers(-2, 7)), r.standard_normal(), np.zeros(6)))
    assert _chosen.changed == {"out"}
    assert set(_chosen.callees) == {_halved, _squared, _as_it_is}


def test_procedures_to_choose_from_are_alike():
    """One with other arguments is named, with what it takes."""

    @procedure
    def other(x: int, out: "float[:]") -> float:
        return x + out[0]

    mixed = ProcedureTable({0: other}, _halved)

    @procedure
    def calls(k: int, out: "float[:]") -> float:
        return mixed[k](1.0, out)

    text = r"mixed: other is \(int, float\[:\]\) -> float, but _halved is \(float, float"
    with pytest.raises(TraceError, match=text):
        calls.ir()


@procedure
def _largest(p: Points, k: int) -> "(int, float)":
    at, value = -1, -math.inf
    for i in range(p.count):
        if p.kind[i] == k and p.x[i, 0] > value:
            at, value = i, p.x[i, 0]
    return at, value


@procedure(inline=True)
def _length(x: "float[3]") -> float:
    return sqrt(x @ x)


@procedure
def _records(p: Points, start: int = 1) -> int:
    for k in range(start, 5):
        i, x = _largest(p, k)
        if i < 0:
            continue
        p.total += x * _length(p.x[i] * 2)
        p.kind[i] = -k
    p.found = p.total > 0
    p.count = p.count - 1
    q = p.inner
    q.scale = p.limit * sin(q.scale) + atan2(1.0, q.scale) + floor(7 * q.scale)
    p.x[0] = p.x[1] if p.found else p.inner.place
    swap, other = p.x[2, 0], p.x[2, 1]
    p.x[2, 0], p.x[2, 1] = other, swap
    return start if p.found and p.count > 3 else -start


def test_records():
    _same(_records, lambda r: (_points(r), 0))
    p = _points(np.random.default_rng(0))
    assert _records(p) in (1, -1)
    assert p.count == 6
    p.count = np.int64(3)
    assert p.count == 3
    assert p.limit == 1e-3


def test_records_are_checked():
    p = _points(np.random.default_rng(0))
    wanted = (
        r"Points.x must be a contiguous array float\[:, 3\], got float64 array of shape \(3, 4\)"
    )
    with pytest.raises(ShapeError, match=wanted):
        p.x = np.zeros((3, 4))
    with pytest.raises(ShapeError, match="not contiguous"):
        p.x = np.zeros((3, 4)).T.copy().T[:, :3]
    with pytest.raises(ShapeError, match=r"Points.kind must be .* got float64"):
        p.kind = np.zeros(3)
    with pytest.raises(TypeError, match="Points has no field 'y', its fields are count, x"):
        Points(y=3)
    with pytest.raises(TypeError, match="_records: p must be a Points, got Inner"):
        _records(Inner())
    with pytest.raises(ShapeError, match=r"_length: x must be a contiguous array float\[3\]"):
        _length(np.zeros(4))


@procedure
def _widened(n: int) -> float:
    x = 0
    y = 1
    for i in range(n):
        y = x + 1
        x = y * 0.5 + (i > 2)
    while True:
        x += 1
        if x > 10:
            return x - y


def test_variables_have_the_widest_type_of_their_values():
    _same(_widened, lambda r: (int(r.integers(9)),))


@procedure
def _first_is_set(x: "float[3]"):
    y = view(x, 0)
    y[0] = 2.0


@procedure
def _scaled(x: "float[:]", n: int, by: float = 2.0, start: int = 0) -> float:
    total = 0.0
    for k in range(start, n):
        x[k] *= by
        total += x[k]
    return total


@procedure
def _rest(p: Points, x: float, i: int) -> float:
    """What the other procedures leave out."""
    y: float = 1
    a = b = i
    rows = view(p.pool, 6, a + 2, 3)
    rows[1, -1] = exp(-x) + hypot(x, 1.0)
    picked = local("int", 2, 3)
    picked[:] = 0
    one, two = local("float", 2, 4)
    one[:] = x
    two[:] = p.pool[:4] - one
    picked[1, b % 3] = 4
    p.pool[0:4] = abs(-p.pool[2:6])
    p.pool[4] = copysign(2.0, x)
    if not isfinite(1.0 / (x - x + 1e-300 * y)) or isnan(x):
        return -1.0
    M = view(p.pool, 10, 3, 3)
    N = M.T @ M
    N -= M
    far = N[0] if x > 0 else N[2]
    low, high = (far[0], far[2]) if far[0] < far[2] else (far[2], far[0])
    flag = low > 0 and high < 1 and p.inner.scale > 1
    return (
        _scaled(p.pool, 5, start=2) + _scaled(p.pool, 8, x) + picked[1, 1] + low + 2 * high + flag
        + ceil(x) + x**3 + (a - b) + math.pi + one @ two
    )  # fmt: skip


def test_everything_else():
    _same(_rest, lambda r: (_points(r), r.standard_normal(), int(r.integers(5))))


def _refused(f, message):
    with pytest.raises(TraceError, match=message):
        procedure(f)._call  # noqa: B018


def test_errors_name_procedure_line_and_what():
    def generator(n: int) -> int:
        x = [i * i for i in range(n)]
        return x

    _refused(generator, r"procedure generator, .*test_procedures.py, line \d+: ListComp \(\[i ")

    def unknown(n: int) -> int:
        return hypotenuse(n)  # noqa: F821

    _refused(unknown, "line .*: hypotenuse is neither a procedure nor")

    def lost(x: float) -> int:
        return x

    _refused(lost, "what it returns is int, got float: write int")

    def open_end(n: int) -> int:
        if n > 0:
            return 1

    _refused(open_end, "may end without a return")

    def shapes(a: "float[3]", b: "float[2]") -> float:
        c = a + b
        return c[0]

    _refused(shapes, r"arrays of different shapes: float\[3\] and float\[2\]")

    def two_names(a: "float[3]") -> float:
        b = a + 1.0
        c = b
        c[0] = 2.0
        return b[0]

    _refused(two_names, "c = b gives one array two names, and c is changed")

    def two_names_by_call(a: "float[3]") -> float:
        b = a + 1.0
        c = b
        _first_is_set(c)
        return b[0]

    _refused(two_names_by_call, "c = b gives one array two names, and c is changed")

    def field(p: Points) -> int:
        return p.number

    _refused(field, "record Points has no field number")

    def strided(M: "float[3, 3]") -> float:
        return _length(M[:, 1])

    _refused(strided, r"argument x of _length must be contiguous: copy it into a local array")

    def too_few(x: float) -> float:
        a, b = local("float", 3, 2)
        return a[0] + b[0] + x

    _refused(too_few, r"local\('float', 3, 2\) for 2 names")

    def wrong_kind(p: Points) -> float:
        return _length(p.kind)

    _refused(wrong_kind, r"argument x of _length is float\[3\], got int\[:\]")

    def two_types(n: int, x: "float[:]") -> float:
        for e in range(n):
            x[e] = 1.0
        e = 0.5
        return e

    _refused(two_types, r"e must be an int, is a float, as line \d+ assigns one: use two names")

    def over_list(x: "float[3]") -> float:
        total = 0.0
        for y in x:
            total += y
        return total

    _refused(over_list, r"for goes over range\(...\)")

    def beyond(x: "float[3]") -> float:
        return x[3]

    _refused(beyond, "index 3 of an axis of length 3")

    def reassigned(p: Points, x: "float[:]"):
        p.pool = x

    _refused(reassigned, r"pool is float\[:\]: only Python assigns it")

    def other_length(n: int, m: int, x: "float[:]", y: "float[:]"):
        x[:n] = y[1:m]

    _refused(other_length, r"\[1:m\] may be longer than \[:n\]")

    def other_end(n: int, m: int, x: "float[:]", y: "float[:]"):
        x[:n] = y[:m]

    _refused(other_end, r"\[:m\] may be longer than \[:n\]")

    def untyped(n) -> int:
        return n

    _refused(untyped, "argument n has no type")

    def early(n: int) -> int:
        if n > 3:
            m = k  # noqa: F821
        k = n
        return k + m

    _refused(early, "k has no value yet")


@procedure
def _swapped(x: "float[3]", out: "float[:, 3]") -> int:
    a = 2 * x
    b = x + 1.0
    for _ in range(3):
        a, b = b, a
    old = a
    a = a + b
    out[0] = a
    out[1] = b
    out[2] = old
    return int(1e30) > 2**62


def test_names_of_arrays_are_swapped():
    _same(_swapped, lambda r: (r.standard_normal(3), np.zeros((3, 3))), seeds=3)


@procedure
def _fused(a: float, b: float, c: float, d: float) -> "(float, float, float, float)":
    p = a * b
    return a * b + c, c - a * b, a * b - c * d, p + c


def test_products_are_added_with_one_rounding_where_the_source_asks_for_it():
    """The bits do not depend on vectors: a named product is rounded."""
    for x in np.random.default_rng(0).standard_normal((50, 4)):
        a, b, c, d = (Fraction(float(each)) for each in x)
        exact = a * b + c, c - a * b, Fraction(float(a * b)) - c * d, Fraction(float(a * b)) + c
        assert _fused(*x) == tuple(map(float, exact))


@procedure
def _through(address: int, x: "float[:]", y: "float[:]") -> float:
    y[0] = 1.0
    invoke(address, x, view(y, 1))
    return y[1] + y[0]


def test_machine_code_is_called_by_address():
    """Memory that other code changes is read again."""
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.POINTER(ctypes.c_double)] * 2)
    code = prototype(lambda x, y: y.__setitem__(0, 2 * x[0]))
    address = ctypes.cast(code, ctypes.c_void_p).value
    _same(_through, lambda r: (address, r.standard_normal(2), np.zeros(3)), seeds=3)


@pytest.fixture
def no_background(monkeypatch):
    """Nothing is optimised meanwhile, of this test or of those before."""
    jobs = improving._stop()
    monkeypatch.setattr(native, "improve_later", lambda job: None)
    yield
    for job in jobs:
        improving.improve_later(job)


@pytest.mark.usefixtures("no_background")
def test_code_is_kept_on_disk(tmp_path, monkeypatch):
    """A new process finds the code by what the procedure and those it calls depend on."""
    monkeypatch.setenv("KINETREE_CACHE", str(tmp_path))
    monkeypatch.setattr(on_disk, "_writer", lambda: "this")
    ir, alone = Procedure.ir, Store.alone

    @contextmanager
    def after_another(store, key):
        monkeypatch.setattr(Store, "alone", alone)
        procedure(_records.function)(p)
        monkeypatch.setattr(Procedure, "ir", lambda self: pytest.fail("written again"))
        yield

    again = procedure(_records.function)
    p, q = (_points(np.random.default_rng(1)) for _ in range(2))
    expected = again(p)
    assert {kept.name: kept.tier for kept in kept_code(open_store())} == {"_records": "general"}
    monkeypatch.setattr(Procedure, "ir", lambda self: pytest.fail("written again"))
    once_more = procedure(_records.function)
    assert once_more(q) == expected
    assert q.total == p.total
    with pytest.raises(pytest.fail.Exception, match="written again"):
        procedure(_records.function, inline=False)(q)
    open_store().clear()
    monkeypatch.setattr(Procedure, "ir", ir)
    monkeypatch.setattr(Store, "alone", after_another)
    assert procedure(_records.function)(q) == expected
    assert Procedure.ir is not ir


def _alone(original, *callees):
    """A copy of a procedure that is compiled by itself and calls these copies.

    The original stays as it is: the background may be writing its text again, to optimise it.
    """
    f = original.function
    names = {**f.__globals__, **{each.name.removesuffix("_alone"): each for each in callees}}
    made = FunctionType(f.__code__, names, f"{f.__name__}_alone", f.__defaults__, f.__closure__)
    made.__annotations__, made.__qualname__ = f.__annotations__, f"{f.__qualname__}_alone"
    return procedure(made, inline=False)


def test_large_procedures_are_compiled_separately():
    """Several results and conditions pass from one module to another."""
    records = _alone(_records, _alone(_largest))
    assert records.members == [_length, records]
    assert 'declare { i64, double } @"' in records.ir()
    _same(records, lambda r: (_points(r), 0), seeds=5)
    assert not _records.is_large


@procedure
def _rows(x: "float[:]", y: "float[:]", at: int) -> None:
    M = view(x, at, 2, 6)
    M[0] = 2.0 * M[1] + view(y, 0, 6)
    M[1] -= M[0]


def test_rows_of_six_are_written_at_once():
    """Unless numbers of arrays may be anywhere, as on other devices."""
    _same(_rows, lambda r: (r.normal(size=15), r.normal(size=6), int(r.integers(4))), seeds=5)
    assert "store <4 x double>" in _rows.ir()
    assert "store <" not in module_text(_rows, for_python=False)


def test_records_and_procedures_are_copied():
    p = _points(np.random.default_rng(3))
    q = pickle.loads(pickle.dumps(p))
    _same_memory(p, q)
    q.x[0] = 7.0
    assert not np.any(p.x == 7.0)
    assert _length(copy.copy(q).x[0]) == sqrt(3 * 49.0)
    assert pickle.loads(pickle.dumps(_length)) is _length


def test_recursion_is_rejected():
    with pytest.raises(TraceError, match="procedures do not call themselves: _again calls _again"):
        _again(3)


@procedure
def _again(n: int) -> int:
    return _again(n - 1)


@procedure
def _shared_sum(n: int, x: "float[:]", y: "float[:]") -> float:
    total = 0.0
    for k in lanes(n):
        y[k] = 2.0 * x[k]
        total += x[k]
    return lane_sum(total)


@procedure
def _lanes_in_lanes(n: int, x: "float[:]") -> None:
    for i in lanes(n):
        for j in lanes(n):
            x[i] = float(j)


@procedure
def _sum_in_lanes(n: int, x: "float[:]") -> None:
    for i in lanes(n):
        x[i] = lane_sum(x[i])


@procedure
def _calls_in_lanes(n: int, x: "float[:]") -> None:
    for i in lanes(n):
        x[i] = _shared_sum(n, x, x)


@procedure
def _part_of_lanes(n: int, x: "float[:]") -> None:
    for i in lanes(1, n):
        x[i] = 0.0


def test_loops_over_lanes_are_loops_on_a_cpu():
    x, y = np.arange(40.0), np.zeros(40)
    assert _shared_sum(40, x, y) == _shared_sum.python(40, x, y) == x.sum()
    np.testing.assert_array_equal(y, 2 * x)
    assert _shared_sum.uses_lanes


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (_lanes_in_lanes, "there is no loop over lanes in it"),
        (_sum_in_lanes, "lane_sum comes after a loop over lanes, not in it"),
        (_calls_in_lanes, "_shared_sum loops over lanes, and is called in such a loop"),
        (_part_of_lanes, r"lanes\(count\) takes one number"),
    ],
)
def test_what_lanes_cannot_share_is_rejected(wrong, message):
    with pytest.raises(TraceError, match=message):
        wrong(3, np.zeros(3))


@procedure
def _outer_product(n: int, m: int, x: "float[:]", y: "float[:]", z: "float[:]") -> None:
    for i, j in lanes(n, m):
        both = x[i] * y[j]
        z[i * m + j] += both


@procedure
def _pairs_of_ranges(n: int, x: "float[:]") -> None:
    for i, j in range(n):
        x[i] = float(j)


@procedure
def _powers(n: int, x: "float[:]") -> None:
    own = local("float", 8)
    for i in lanes(n):
        for k in unroll(8):
            own[k] = x[i]
        for k in unroll(1, 8):
            own[k] *= own[k - 1]
        x[i] = own[7]


def test_lanes_share_pairs():
    x, y, z = np.arange(3.0), np.arange(4.0), np.ones(12)
    _outer_product(3, 4, x, y, z)
    np.testing.assert_array_equal(z.reshape(3, 4), 1 + np.outer(x, y))
    _outer_product.python(3, 4, x, y, z)
    np.testing.assert_array_equal(z.reshape(3, 4), 1 + 2 * np.outer(x, y))
    with pytest.raises(TraceError, match=r"for i, j goes over lanes\(n, m\)"):
        _pairs_of_ranges(3, np.zeros(3))


def test_turns_are_unrolled_where_lanes_share_loops():
    x = np.array([1.0, 2.0, 3.0])
    _powers(3, x)
    np.testing.assert_array_equal(x, np.arange(1.0, 4.0) ** 8)
    assert "llvm.loop.unroll.full" in module_text(_powers, for_python=False, lanes=4)
    assert "llvm.loop.unroll.full" not in module_text(_powers, for_python=False)


def test_lanes_read_for_several_turns_before_they_write():
    text = module_text(_outer_product, for_python=False, lanes=32)
    body = text[text.index("define ") :]
    assert body.count("fmul double") == 5  # four turns at once, and what is left one by one
    sums = [m.start() for m in re.finditer("fadd double|call double @llvm.fma", body)]
    loads = [m.start() for m in re.finditer("store double %t", body)]
    assert sums[3] < loads[-5] < loads[-2] < sums[4]
    with compiling() as llvm:
        llvm.parse_assembly(text).verify()


@record
class _Size:
    """A number that code may have."""

    n: int


@procedure
def _fill(size: _Size, x: "float[:]") -> None:
    for i in range(size.n):
        x[i] = 1.0


def test_numbers_of_records_are_constants_where_they_are_known():
    assert "icmp slt i64 %t.1, 7" not in module_text(_fill, for_python=False)
    text = module_text(_fill, for_python=False, constants={("_Size", "n"): 7})
    assert re.search(r"icmp slt i64 %t\.\d+, 7\b", text)
    x = np.zeros(3)
    _fill(_Size(n=2), x)
    np.testing.assert_array_equal(x, [1.0, 1.0, 0.0])


def test_progress_names_the_part_of_kinetree_that_is_compiled():
    from kinetree.control.riccati import roll_out

    assert roll_out.title == "code of kinetree.control (roll out), once on this machine"


# --- Workspaces -------------------------------------------------------------------------------


@workspace
class Simplex:
    """A few corners, and what is known of them."""

    count: int
    size: float
    is_flat: bool
    corner: "float[4, 3]"
    number: "int[4]"
    way: "float[3]"


@procedure(inline=False)
def _add(s: Simplex, x: "float[3]", number: int):
    s.corner[s.count] = x
    s.number[s.count] = number
    s.count += 1


@procedure
def _flatness(s: Simplex) -> float:
    a, b = s.corner[1] - s.corner[0], s.corner[2] - s.corner[0]
    s.way[:] = cross(a, b)
    s.size = sqrt(s.way @ s.way)
    s.is_flat = s.size < 0.5
    return s.way @ (s.corner[3] - s.corner[0])


@procedure
def _work_of_simplices(x: "float[:, 3]", out: "float[4]") -> int:
    first, second = local(Simplex), local(Simplex)
    first.count = 0
    second.count = 0
    for k in range(4):
        _add(first, x[k], k)
        if k > 1:
            _add(second, x[k + 4], 10 * k)
        if first.count > 3:
            first.count = 3
    _add(second, x[0], 7)
    _add(second, x[1], 8)
    second.corner[2:3] = first.corner[:1] * 2
    out[0] = _flatness(first) + _flatness(second)
    out[1] = first.size if first.is_flat else second.size
    way = first.way
    first.way[:] = first.way + second.way
    out[2] = way[0]
    out[3] = second.corner[:, 1] @ second.corner[:, 2]
    return first.number[2] + 100 * second.number[3] + second.count


def test_workspaces():
    _same(_work_of_simplices, lambda r: (r.normal(size=(8, 3)), np.zeros(4)))


def test_python_gives_workspaces_to_machine_code():
    s = local(Simplex)
    assert np.isnan(s.corner).all()
    s.count = 0
    for k in range(4):
        _add(s, np.eye(4, 3)[k], k)
    assert s.count == 4
    np.testing.assert_array_equal(s.corner, np.eye(4, 3))
    np.testing.assert_array_equal(s.number, range(4))
    assert _flatness(s) == pytest.approx(-1.0)
    assert not s.is_flat
    with pytest.raises(TypeError, match="a Simplex is work of one call, and is not copied"):
        copy.deepcopy(s)


def test_workspaces_have_numbers_of_their_own():
    with pytest.raises(
        TraceError, match=r"Open\.x: a field of a workspace is int, .* got float\[:"
    ):

        @workspace
        class Open:
            x: "float[:, 3]"

    with pytest.raises(TraceError, match=r"Holder\.inner: a field of a workspace .* got Inner"):

        @workspace
        class Holder:
            inner: Inner


@record(apart=True)
class _Pair:
    """Arrays that lie apart."""

    a: "float[:]"
    b: "float[:]"


@procedure(inline=True)
def _add_next(x: "float[:]", y: "float[:]", i: int) -> None:
    x[i + 1] = 0.5 * y[i] + x[i]


@procedure
def _mix(h: _Pair, other: "float[:]", n: int) -> float:
    x = h.a
    either = h.a
    s = 0.0
    for i in range(n):
        _add_next(h.a, h.b, i)
        _add_next(h.b, h.a, i)
        _add_next(h.b, other, i)
        x[0] += view(h.b, i)[0] + s
        either = h.b if i % 3 == 0 else h.a
        other[i] += either[i] - x[i]
        s += other[0] + (h.a if n > 3 else h.b)[i]
        three = view(either, 0, 3)
        three += 0.1 * view(h.a, 1, 3)
    return s


def test_arrays_that_lie_apart_have_their_own_tags():
    """Arguments may be any of them: what is known of one is read again after it was written."""
    for whole in ("new", "a", "b"):
        found = []
        for run in (_mix, _mix.python):
            draws = np.random.default_rng(0).normal(size=(3, 9))
            h = _Pair(a=draws[0].copy(), b=draws[1].copy())
            other = draws[2].copy() if whole == "new" else getattr(h, whole)
            found.append((run(h, other, 7), h.a.copy(), h.b.copy(), other.copy()))
        for x, expected in zip(*found, strict=True):
            np.testing.assert_allclose(x, expected, rtol=1e-12)
    text = module_text(_mix)
    assert '"_Pair.a, double"' in text
    assert '"_Pair.b, double"' in text
    assert "@_add_next.0.0(" in text  # one for each choice of arrays
    assert "@_add_next.0.2(" in text
    assert "_Pair.a, double" not in module_text(_mix, for_python=False)


def test_no_vectors_of_512_bits():
    """After such an instruction some processors of x86-64 run slower, for a millisecond."""
    with compiling() as llvm:
        target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
        features = "+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx2,+fma"  # without a preference
        machine = target.create_target_machine(cpu="skylake-avx512", features=features, opt=2)
        module = llvm.parse_assembly(module_text(momentum), llvm.create_context())
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        llvm.create_pass_builder(machine, options).getModulePassManager().run(
            module, llvm.create_pass_builder(machine, options)
        )
        text = machine.emit_assembly(module)
    assert "ymm" in text
    assert "zmm" not in text
