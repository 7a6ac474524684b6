"""Kernels whose code is compiled once for every robot: loops over tables, and a robot as data.

``LoopCode`` is the machine code of a ``LoopProgram``: its ``step`` and the cases of the kinds of
rows that were met so far. A kind is recorded and compiled when the first robot has it, and kept on
disk by itself. Such a step has the same entry point as that of specialised code, with the robot in
place of the constants; so all that surrounds it is shared: the loop over samples, the lean path,
threads, checks. What ties a robot to the code is a small object file, the same for all: every
kernel loads a copy and fills in its table.
"""

import ctypes
import json
import os
from dataclasses import asdict
from functools import cache, cached_property
from threading import RLock
from typing import Any

import numpy as np

from kinetree.codegen import build, keys
from kinetree.codegen.cache import open_store
from kinetree.codegen.linking import LinkedEntry
from kinetree.codegen.loops.language import BODIES, SINGLE
from kinetree.codegen.loops.layout import Layout, layout_of
from kinetree.codegen.loops.robots import Bound, units_of
from kinetree.codegen.machine_code import default_lanes, has_many_registers, load
from kinetree.codegen.program import Argument
from kinetree.codegen.progress import building
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.codegen.runtime.single import gufunc
from kinetree.errors import TraceError


class LoopCode:
    """Machine code of a program for one precision and number of lanes, for every robot.

    Args:
        source: has ``program(kinds)``, which records the program for some kinds of bodies.
        key: what identifies the source, or None.
        dtype: precision.
        lanes: samples at a time; 1 where values decide which code runs next.
    """

    def __init__(self, source, key, dtype, lanes):
        self.source, self.key, self.dtype, self.lanes = source, key, dtype, lanes
        self.units: dict[tuple, dict] = {}
        self.name = _name(source, key)
        self.layout: Any = None

    def ready(self, data) -> None:
        """Load or compile the code for all kinds of bodies of a robot."""
        name = keys.named_in("loops", repr(self.key))
        with building(f"{name} for every robot with such joints", 1):
            if not self._have(data, make=False):
                with open_store().alone(self._request("turn")):
                    self._have(data, make=True)

    def _have(self, data, make):
        """Whether all code for a robot is loaded; compiles what is missing only if ``make``."""
        found: dict[str, Any] = {}
        whole = self.layout is not None or self._have_layout(data, found, make)
        missing = [u for u in units_of(data, self.layout) if u not in self.units] if whole else []
        for wanted in (
            [u for u in missing if len(u[1]) < 2],
            [u for u in missing if len(u[1]) > 1],
        ):
            pairs = frozenset(kinds for _, kinds in missing if len(kinds) > 1)
            whole = whole and self._have_units(data, wanted, pairs, found, make)
        # What is loaded stays: tables of robots have its addresses, and units may share a program.
        self.codes |= build.loaded_programs({n: x for n, x in found.items() if n not in self.codes})
        return whole

    def address(self, domains, kinds, n) -> int:
        """Address of the machine code of case ``n`` for kinds of rows; 0 if they never meet."""
        unit = self.units.get((domains, kinds))
        if unit is None or n not in unit["cases"]:
            return 0  # no two rows of these kinds meet
        program = unit["program"]
        return self.codes[program].address(f"case_{n}_{program}")

    def width(self, domain, kind) -> int:
        """Numbers that a row of a kind has in the workspace."""
        return len(self.units[(domain,) if domain else (), (kind,) if domain else ()]["row"])

    def angle(self, domain, kind) -> Any:
        """Argument, column and index of the joint angle of a kind of row, or None."""
        return self.units[(domain,), (kind,)]["angle"] if domain else None

    # --- the loops, and the cases of a kind -----------------------------------------------------

    def _request(self, *what):
        """Cache key of a part of this code, or None."""
        return keys.loop_request(self.key, self.dtype, self.lanes, *what)

    def _have_layout(self, data, found, make):
        """Load the memory layout and entry point from disk, or compile; whether they are there."""
        self.codes = {}
        request = self._request("step", _names(data))  # lanes as they usually are
        kept = open_store().get(request) if request else None
        if kept is not None:
            known = json.loads(kept)
            code = build.kept_program(known["program"])
            if code is not None:
                self.layout, self.step = Layout(**known["layout"]), known["program"]
                self.lanes, found[self.step] = 1 if self.layout.alone else self.lanes, code
                self.group = known["group"]
                return True
        if not make:
            return False
        from kinetree.codegen.render.llvm_body import Vector
        from kinetree.codegen.render.llvm_loops import step  # not needed when the code is found
        from kinetree.codegen.render.llvm_math import angles_at_once

        program = self.record_loops(data.rows(BODIES).kinds[:1])  # it is the same for all
        self.layout = layout_of(program, data.numbers)
        self.lanes = 1 if self.layout.alone else self.lanes
        self.group = angles_at_once(Vector(self.dtype, self.lanes))
        self.step, text = keys.program_of(step(program, self.layout, self.dtype, self.lanes))
        found[self.step] = build.kept_program(self.step) or text
        if request:
            entry = {"layout": asdict(self.layout), "program": self.step, "group": self.group}
            open_store().put(request, json.dumps(entry).encode())
        return True

    def _have_units(self, data, units, pairs, found, make):
        """Load the cases of some kinds, or record and compile if ``make``; whether all exist."""
        requests = {u: self._request_of(u, data) for u in units}
        unknown = [u for u in units if not self._is_found(u, requests[u], found)]
        if not (unknown and make):
            return not unknown
        kinds, alone = data.rows(BODIES).kinds, any(u[0] == (BODIES,) for u in unknown)
        known = (self.name, kinds, pairs) in _recorded
        if not (known or (pairs and alone)):  # a kind that is unknown has unknown pairs
            kinds = _kinds_in(data, unknown)
        program = self.record_loops(kinds, pairs)
        for domains, kinds in unknown:
            entry = self.units[domains, kinds] = self._entry(program, domains, kinds, found)
            request = requests[domains, kinds]
            if request:
                open_store().put(request, json.dumps(entry).encode())
        return True

    def _entry(self, program, domains, kinds, found):
        """Cache record of a unit: its program's name, cases, angle, and numbers of a row."""
        from kinetree.codegen.loops.lowering import angle_of, cases_of
        from kinetree.codegen.render.llvm_cases import unit

        cases = [n for n, *_ in cases_of(program, self.layout, domains, kinds)]
        angle = angle_of(program, self.layout, domains, kinds)
        entry: dict[str, Any] = {"program": None, "cases": cases, "angle": angle}
        if len(kinds) < 2:
            entry["row"] = program.rows.get((domains[0], kinds[0]) if kinds else (SINGLE, ""), ())
        if cases:
            text = unit(program, self.layout, domains, kinds, self.dtype, self.lanes)
            name, text = keys.program_of(text)
            if found.get(name) is None:
                found[name] = build.kept_program(name) or text
            entry["program"] = name
        return json.loads(json.dumps(entry))  # as it is on disk

    def _request_of(self, unit, data):
        """Cache key of a unit (domains and kinds), known before recording; or None."""
        domains, kinds = unit
        names = [getattr(kind, "key", kind) for kind in kinds]
        # Where numbers are in the rows of two kinds is known once each is there by itself.
        pairs = zip(domains, kinds, strict=True) if len(kinds) > 1 else ()
        rows = [self.units[(d,), (k,)]["row"] for d, k in pairs]
        return None if None in names else self._request(*unit[0], names, rows, _names(data))

    def _is_found(self, unit, request, found):
        """Whether a unit is in the disk cache; its object code goes into ``found``."""
        kept = open_store().get(request) if request else None
        if kept is None:
            return False
        entry = json.loads(kept)
        name = entry["program"]
        if name is not None and found.get(name) is None:
            code = build.kept_program(name)
            if code is None:
                return False
            found[name] = code
        self.units[unit] = entry
        return True

    def record_loops(self, kinds: Any, pairs: Any = frozenset()) -> Any:
        """Loop program recorded for some kinds of bodies; the last few recordings are kept."""
        key = self.name, kinds, pairs
        program = _recorded.pop(key, None) or self.source.program(kinds, pairs)
        _recorded[key] = program  # the last one now
        while len(_recorded) > RECORDED:
            del _recorded[next(iter(_recorded))]
        return program


def _names(data):
    """Names of a robot's parameter tables, by domain."""
    return {domain: sorted(tables) for domain, tables in data.numbers.items()}


def _kinds_in(data, units):
    """Kinds of bodies that some units are for, at least one."""
    wanted = {k for unit in units for d, k in zip(*unit, strict=True) if d == BODIES}
    kinds = data.rows(BODIES).kinds
    return tuple(k for k in kinds if k in wanted) or kinds[:1]


RECORDED = 16
"""Programs that stay in memory; a megabyte each, and all that they are for is kept on disk."""

_codes: dict[tuple, LoopCode] = {}
_recorded: dict[tuple, Any] = {}  # programs by source, kinds, pairs; the last one used at the end


def _name(source, key):
    """Name of a source in this process: its key, or its ``id``."""
    return id(source) if key is None else repr(key)


def loop_code(source, key, dtype, lanes) -> LoopCode:
    """Loop code of a source for one precision and lanes, one for the whole process."""
    name = (_name(source, key), dtype, lanes)
    found = _codes.get(name)
    if found is None:
        found = _codes[name] = LoopCode(source, key, dtype, lanes)
    return found


_making = RLock()  # one thread at a time finds out what is missing and makes it
if hasattr(os, "register_at_fork"):  # who makes it would not be there to finish
    os.register_at_fork(
        before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release
    )


@cache
def _binding(dtype, lanes):
    """Object code of the entry points ``loop`` and ``single``, which every robot loads."""
    request = keys.loop_request(("binding",), dtype, lanes)
    name = open_store().get(request) if request else None
    found = build.kept_program(name.decode()) if name is not None else None
    if found is None:
        from kinetree.codegen.render.llvm_loops import binding

        program, text = keys.program_of(binding(dtype, lanes))
        found = build.compiled_programs({program: text})[program]
        if request:
            open_store().put(request, program.encode())
    return found


class LoopVariant:
    """Code for one precision and number of lanes, tied to a robot: a ``Variant``."""

    def __init__(self, kernel, dtype, lanes):
        from kinetree.codegen.render.llvm_body import Vector
        from kinetree.codegen.render.llvm_driver import table_numbers

        with _making:
            self.shared = loop_code(kernel.source, kernel.key, dtype, lanes)
            self.shared.ready(kernel.data)
        self.bound = Bound(kernel.data, self.shared)
        self.code = load(_binding(dtype, self.shared.lanes))
        words = table_numbers(kernel, Vector(dtype, self.shared.lanes), self.bound.slots)
        table = (ctypes.c_int64 * (3 + len(words))).from_address(self.code.global_address("kernel"))
        step = self.shared.codes[self.shared.step].address(f"step_{self.shared.step}")
        table[:] = [step, 0, self.bound.words.ctypes.data, *words]
        self.status = ctypes.c_int64(0)
        self.ufunc = gufunc(kernel, dtype, self.code.address("loop"), self.status)


class LoopKernel(Kernel):
    """A quantity of one robot by code for all robots.

    Args:
        name: for messages.
        inputs: ``Argument``s in call order.
        outputs: ``Argument``s of the results.
        source: has ``program(kinds)``, which records a ``LoopProgram`` for some kinds of bodies.
        data: the robot.
        reference: as in ``Kernel``.
        validate: as in ``Kernel``.
        key: what identifies the source, whatever the robot, or None.
    """

    def __init__(self, name, inputs, outputs, source, data, *, reference, validate, key=None):
        super().__init__(
            name, inputs, outputs, None, reference=reference, validate=validate, key=key
        )
        self.source: Any = source
        self.data = data

    def make_variant(self, dtype, wide, level) -> Any:
        """Compiled code bound to the robot's tables."""
        lanes = default_lanes(dtype, small=has_many_registers()) if wide else 1
        return LoopVariant(self, dtype, lanes)

    def rates(self, wrt) -> Any:
        """Kernel of directional derivatives by loops; None where loops have none."""
        more = [self.inputs[k] for k in wrt]
        return self._derivative("rates", wrt, more, self.outputs)

    def gradients(self, wrt) -> Any:
        """Kernel of gradients of a weighted sum by loops; None where loops have none."""
        return self._derivative("gradients", wrt, self.outputs, [self.inputs[k] for k in wrt])

    def linear_transpose(self, wrt) -> Any:
        """None: loops take all inputs."""
        return None

    def _derivative(self, what, wrt, more, outputs):
        """Kernel of a derivative by loops, or None if the loops have none."""
        source = LoopDerivative(self.source, what, wrt)
        key = None if self.key is None else (self.key, what, wrt)
        if not source.exists(key):
            return None
        inputs = [*self.inputs, *(Argument(f"{what} {a.name}", a.shape) for a in more)]
        outputs = [Argument(f"out{k}", a.shape) for k, a in enumerate(outputs)]

        def reference(arrays):
            from kinetree.codegen.loops.meaning import interpret

            program = source.program(self.data.rows(BODIES).kinds)
            found: Any = interpret(program, self.data, *arrays)
            return found if len(found) > 1 else found[0]

        return LoopKernel(
            f"{what} of {self.name}",
            inputs,
            outputs,
            source,
            self.data,
            key=key,
            reference=reference,
            validate=lambda arrays: self.validate(arrays[: len(self.inputs)]),
        )

    # --- calls from other programs: see kinetree.expr.calls --------------------------------------

    calls_general_code = True
    constants: Any = {}

    @property
    def cost(self) -> float:
        """Rough number of operations of a sample: 50 for each number that it takes or returns."""
        return 50.0 * self.numbers

    @cached_property
    def own_cost(self) -> float:
        """Rough number of operations of a sample, as ``cost``."""
        return self.cost

    def entry(self, dtype, lanes, level) -> Any:
        """Machine code bound to the robot, as a subroutine for other code."""
        found = self._entries.get((dtype, lanes))
        if found is None:
            variant = LoopVariant(self, dtype, lanes)
            shared, space = variant.shared, variant.bound.slots * np.dtype(dtype).itemsize * lanes
            if shared.lanes != lanes:
                raise ValueError(f"{self.name} runs {shared.lanes} samples at a time, not {lanes}")
            found = self._entries[dtype, lanes] = LinkedEntry(
                f"loops_{shared.step}",
                shared.codes[shared.step].address(f"step_{shared.step}"),
                variant.bound.words.ctypes.data,
                max(-(-space // 64), 1) * 64,
                tuple(a.size for a in (*self.inputs, *self.outputs)),
                has_frame=True,
                is_bound=True,
                code=variant,
            )
        return found


class LoopDerivative:
    """The source of rates or gradients of a program."""

    def __init__(self, source, what, wrt):
        self.source, self.what, self.wrt = source, what, wrt
        self.typical = source.typical

    def program(self, kinds, pairs=None):
        """Loop program of the derivative, recorded for some kinds of bodies."""
        from kinetree.codegen.loops import derivatives

        return getattr(derivatives, self.what)(self.source.program(kinds, pairs), self.wrt)

    def exists(self, key) -> bool:
        """Whether the loop program can be differentiated; the answer is cached on disk."""
        request = keys.loop_request(key, "any", 0, "exists")
        known = open_store().get(request) if request else None
        if known is None:
            try:
                self.program(self.typical)
            except TraceError:
                known = b"no"
            else:
                known = b"yes"
            if request:
                open_store().put(request, known)
        return known == b"yes"
