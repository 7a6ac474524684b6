"""A program as CUDA C: one thread computes one sample, a warp moves its samples together.

The text defines ``run(count, dense, input, step, ..., output, ...)``; for every input there is
its address and the numbers from one sample to the next (0 when all share it), then the address of
every output. ``dense`` says that, inputs that all share apart, addresses are multiples of 16 bytes
and steps the sizes of the inputs. Any number of threads up to ``LARGEST_BLOCK`` may be in a block,
a multiple of 32; each 32 of them need ``CudaText.shared`` bytes of shared memory. Warps never wait
for each other, but where there are routines (``cuda_procedures.py``). With ``CudaText.ahead`` each
computes several times 32 samples if there are few, and loads the next meanwhile: into a second set
of tiles, or, where there is no room for one, into the tile of an input after its last use. Long
programs have values that wait for long in shared memory.

Inputs and results go through tiles in shared memory (``cuda_tiles.cuh``). Results of which too few
rows would fit there are computed by several functions (``cuda_pieces.py``), which may leave values
for each other in a workspace, the last argument: there the numbers of 32 samples lie together, and
the first numbers of all of them are neighbours, then the second ones, and so on.

Where a check of the program fails, or an input is not finite and a division or a choice could hide
that, all results of the sample are NaN. Otherwise what is not finite goes where sums and products
take it. Neighbours are not touched.

Quotients in float32 are within 1 ulp for divisors between 2**-126 and 2**126 in size.
"""

from dataclasses import dataclass
from typing import Any

from kinetree.codegen.order import by_results, creation_order, fewest_waiting, most_waiting
from kinetree.codegen.parts import LEFT, WORK
from kinetree.codegen.render.c import NOT_FINITE, offset
from kinetree.codegen.render.cstyle import assignments
from kinetree.codegen.render.cuda_entry import CudaText, EntryPoints, head, runs
from kinetree.codegen.render.cuda_helpers import helping_lines
from kinetree.codegen.render.cuda_language import Cuda, angles_of, elementary
from kinetree.codegen.render.cuda_outlined import guard, outline
from kinetree.codegen.render.cuda_places import (
    WARP,
    Ahead,
    Tile,
    given_up,
    last_mentions,
    last_uses,
    park,
    sparse_results,
    tiles,
)
from kinetree.codegen.render.cuda_procedures import (
    APART,
    ENLIST,
    LISTS,
    CudaWithRoutines,
    all_procedures_text,
    lists_bytes,
    stored_early,
)
from kinetree.codegen.watch import hidden_inputs
from kinetree.expr.node import LEAVES

LARGEST_BLOCK = 256  # threads
_SHARED = 224 * 1024  # bytes of shared memory of a multiprocessor; on a smaller one fewer fit
_REGISTERS = 65_536  # of a multiprocessor
_WARPS = 8  # of a block with routines, of which a multiprocessor has one
SHARED_OF_A_BLOCK = {True: 227 * 1024, False: 99 * 1024}  # bytes, on Hopper and elsewhere
_BYTES = 60 * 1024  # of the tiles of a warp, at most; three of them leave room for a cache
_STAGED = 160  # numbers of a sample's inputs that go through tiles
_TWICE = 8 * 1024  # bytes of the inputs of a warp that it may have two sets of
_ROOM = 28_928  # bytes of a warp that takes an eighth of a multiprocessor of Hopper
_IN_REGISTERS = 200  # values of 32 bits; the compiler needs some registers for itself
_PREFETCHED = 0.15  # of a program, after which tiles are requested: the last results are stored
_MUCH = 18  # operations for each number that is read or written
_LONGEST = 10_000  # operations of a program that is not computed in parts
_PART = 7_000  # operations of a part
_WRITTEN = 14 * 1024  # bytes of the tiles of a warp that writes results of parts
_SHORT = 9_500  # nodes of a program whose instructions, 128 kB at most, have room in their cache
_RESIDENT = {64: 3, 88: 0, 104: 2}  # by waiting values of 32 bits: what was fastest


@dataclass(frozen=True)
class Layout:
    """How samples travel."""

    bytes: int = _BYTES
    """Of the tiles of a warp, at most."""
    order: str | None = None
    """``"created"``, ``"results"``, or None for the best one."""
    reuse: bool = True
    """Whether results may take the tiles of inputs."""
    ahead: bool | None = None
    """Whether a warp loads the inputs of its next samples while it computes; None where it computes
    much and there is memory enough."""
    large: bool = True
    """Whether a multiprocessor has the shared memory of Hopper, and copies tiles by itself."""
    resident: int | None = None
    """Blocks of the largest size that a multiprocessor must have registers for; 0 for what the
    compiler finds best, None for what the number of waiting values suggests."""
    longest: int = _LONGEST
    """Operations of a program whose results are cut into slices; beyond that it is computed in
    parts."""
    part: int = _PART
    """Operations of a part, about."""
    written: int = _WRITTEN
    """Bytes of the tiles of a warp that writes what parts have left."""
    short: int = _SHORT
    """Nodes of a program that is written without loops over angles and states."""
    by_warps: bool = False
    """Whether the program calls routines, which a warp computes for its samples in turn: numbers of
    samples are read and written in device memory, without tiles."""

    def results(self, program, dtype) -> int:
        """Numbers of a sample's results that fit into the shared memory of a warp."""
        if self.by_warps:
            return sum(a.size for a in program.outputs)
        inputs = sum(t.size for t in tiles([a for a in program.inputs if a.size], _STAGED).values())
        return max(32, self.bytes // (32 * (4 if dtype == "float32" else 8)) - inputs)


LONG_LOOP = Layout(order="created", ahead=False)
"""For programs that are one long loop: most registers spilled are those of its middle, and what
samples travel by is better left to the cache that the spilled ones are in."""
ROUTINES = Layout(order="created", ahead=False, by_warps=True)
"""For such programs with routines."""


_OWN = [
    "    extern __shared__ vector16 shared[];",
    "    real *const place = block + (at >> 5) * (32 * NUMBERS_OF_A_SAMPLE);",
    "    real *const row = place + (at & 31) * NUMBERS_OF_ITS_OWN;",
    "    real *const column = place + 32 * NUMBERS_OF_ITS_OWN + (at & 31);",
]
"""Numbers of a lane's sample in device memory, for routines."""


@dataclass(frozen=True)
class WholeResults:
    """Results of which an entry point computes a part."""

    outputs: tuple
    """All of them, as ``Argument``s."""
    slices: dict
    """For each output of the program the name of the whole one and the number of it that the slice
    begins with."""
    work: int = 0
    """Numbers of a sample in the workspace; 0 where there is none."""
    left: tuple = ()
    """Places in the workspace of what the program's output ``LEFT`` consists of."""
    status: int | None = None
    """Place in the workspace for NaN where something is wrong with a sample."""


def render(program, dtype="float64", layout=None, whole=None) -> CudaText:
    """CUDA C of a program; its entry point is the kernel ``run``.

    Args:
        program: what to compute.
        dtype: ``"float32"`` or ``"float64"``.
        layout: how samples travel.
        whole: outputs of the entry point, where those of the program are slices of them.
    """
    return _Renderer(program, dtype, layout or Layout(), whole).render()


class _Renderer:
    def __init__(self, program, dtype, layout, whole):
        self.program, self.dtype, self.layout = program, dtype, layout
        self.size, self.f = (4, "f") if dtype == "float32" else (8, "")
        self.inputs = [a for a in program.inputs if a.size and a.name != WORK]
        self.outputs = [a for a in program.outputs if a.size and a.name != LEFT]
        every = {a.name: (a.name, 0) for a in self.outputs}
        self.part = whole or WholeResults(tuple(self.outputs), every)
        self.order = self._order()
        self.tiles = tiles(self._inputs_read(), 0 if layout.by_warps else _STAGED)
        self.results = self._results()
        names = set() if layout.by_warps else {a.name for a in self.outputs}
        self.kept = sparse_results(program, names, dtype)
        self.hidden = sorted(hidden_inputs(program))
        loops = len(self.order) > layout.short and not layout.by_warps
        self.angles = set() if loops else angles_of(program, self.tiles)
        self.watched = self.angles & self._hidden_places()  # when it is looked whether they are far
        self.taken = self._reused_tiles()
        self.inputs_of_a_warp = sum(t.numbers for t in self.tiles.values())
        self.ahead = None if loops else self._ahead()
        self.language: Any = self._language(loops)
        for output, source in self.taken.items():
            self.language.outputs[output] = self.language.inputs[source]
        self.language.in_place = self._in_place() if loops else set()

    def _language(self, loops):
        """Language of the CUDA text, with calls of routines where lanes share them."""
        if self.layout.by_warps:
            rooms = SHARED_OF_A_BLOCK[self.layout.large] - lists_bytes(_WARPS)
            return CudaWithRoutines(self.program, self.dtype, rooms)
        angles, left = self.angles, self.part.left
        return Cuda(self.program, self.dtype, angles, self.kept, left, loops_over_angles=loops)

    def _inputs_read(self):
        """Input arguments that the program reads."""
        nodes = self.program.graph.nodes
        names = {nodes[i][1] for i in self.order if nodes[i][0] == "input"}
        return [a for a in self.inputs if a.name in names]

    def _ahead(self) -> Ahead | None:
        """Scheme by which inputs of a warp's next samples are prefetched, or None."""
        wanted, twice, again = self.layout.ahead, list(self.tiles), []
        if wanted is None:
            wanted = self.inputs_of_a_warp * self.size <= _TWICE and self._computes_much()
        if wanted and twice:
            return Ahead(tuple(twice))
        long = self.layout.large and self.layout.ahead is None and self._computes_much()
        loops = any(self.program.graph.nodes[i][0] == "repeat" for i in self.order)
        if not long or loops or self._waiting() <= _IN_REGISTERS:
            return None
        read = last_uses(self.program, self.order)
        while Ahead(tuple(twice), tuple(again)).numbers(self.tiles) * self.size > _ROOM:
            free = [name for name in twice if name not in self.taken.values()]
            if not free:
                return None
            last = {name: max(read[x] for x in read if x[0] == name) for name in free}
            # rows of odd size are better to park in: their numbers are in different banks
            again.append(min(free, key=lambda name: (self.tiles[name].size % 2, last[name])))
            twice.remove(again[-1])
        slots = _ROOM // self.size - 4 - Ahead(tuple(twice), tuple(again)).numbers(self.tiles)
        return Ahead(tuple(twice), tuple(again), slots // WARP)

    def _waiting(self):
        """Largest number of 32-bit registers that live values take."""
        return most_waiting(self.program, self.order) * self.size // 4

    def _computes_much(self):
        """Whether the program is bound by arithmetic, not by memory traffic."""
        operations = sum(self.program.graph.nodes[i][0] not in LEAVES for i in self.order)
        numbers = sum(a.size for a in (*self.inputs, *self.outputs))
        return operations >= _MUCH * numbers

    def _results(self):
        """Tile in shared memory of each result, by name."""
        sizes = {a.name: a.size for a in self.part.outputs}
        found = {}
        for a in self.outputs:
            name, start = self.part.slices[a.name]
            found[a.name] = Tile(a.size, sizes[name], start)
        return found

    def _order(self):
        """Order in which nodes are computed, as the layout wants it."""
        makers = {"created": creation_order, "results": by_results, None: fewest_waiting}
        return makers[self.layout.order](self.program)

    def _reused_tiles(self):
        """Results that overwrite the tile of an input in shared memory, by name."""
        if not self.layout.reuse:
            return {}
        whole = {name for name, tile in self.results.items() if not tile.is_slice}
        results = [name for name in self.results if name in whole - self.kept.tables.keys()]
        return given_up(self.program, self.order, self.tiles, results)

    def _in_place(self):
        """Inputs, overwritten by results, that are only the initial state of a loop."""
        nodes, users = self.program.graph.nodes, {}
        for i in self.order:
            for a in () if nodes[i][0] in LEAVES else nodes[i][1:]:
                users.setdefault(a, []).append(nodes[i][0])
        own = {a.name: a for a in self.inputs if a.name in self.taken.values()}
        return {
            self.language.input(own[nodes[a][1]], nodes[a][2])
            for a, ops in users.items()
            if ops == ["repeat"] and nodes[a][0] == "input" and nodes[a][1] in own
        }

    def render(self):
        """CUDA C of the program, with its sizes of shared memory and workspace."""
        entry = EntryPoints(self)
        sample = self._sample(entry)
        self.shared = shared = self._shared_bytes()
        parts = [
            f"/* {self.program.name}, {self.dtype}: written by kinetree. */",
            head(self.dtype, shared),
            *self._sizes(),
            elementary(self.dtype),
            entry.following(),
            *self._routines(),
            sample,
            *self._help(),
            *entry.tables(),
            entry.load(),
            entry.run(),
            *(["#endif"] * self.layout.by_warps),
        ]
        text = "\n\n".join(parts) + "\n"
        light = not self._computes_much()
        ahead = self.ahead is not None
        threads = WARP * _WARPS if self.layout.by_warps else 0
        left, registers = self.left_numbers, self._registers()
        return CudaText(text, shared, ahead, light, left, registers, threads)

    def _help(self):
        """Function in CUDA for warps without samples, where there are routines."""
        if not self.layout.by_warps:
            return []
        lines = ["extern __shared__ vector16 shared[];", "(void)block;", *self.helping]
        return [
            "\n".join(["DEVICE void help(real *block)", "{", *(f"    {x}" for x in lines), "}"])
        ]

    def _sizes(self):
        """Numbers of a sample in device memory, and bytes of shared memory before routines' own."""
        if not self.layout.by_warps:
            return []
        sizes = {
            "NUMBERS_OF_ITS_OWN": self.language.own_numbers,
            "NUMBERS_OF_A_SAMPLE": self.left_numbers,
            "BYTES_OF_LISTS": lists_bytes(_WARPS),
        }
        return ["\n".join(f"#define {name} {n}" for name, n in sizes.items()), LISTS]

    def _routines(self):
        """CUDA C of the routines that the program calls, and of their procedures."""
        if not self.layout.by_warps:
            return []
        functions = [
            text.replace("THIS_ROUTINE", name) for text, name in self.language.functions.items()
        ]
        heads = [
            line + ";"
            for text in functions
            for line in text.splitlines()
            if line.startswith("ROUTINE_VOID")
        ]
        return [
            APART,
            f"#define PIECES {len(self.pieces)}",
            "#if !defined(PROGRAM_ALONE) && !defined(PIECE_ALONE)",
            all_procedures_text(self.language.routines, self.dtype),
            *functions,
            "#else",
            *heads,
            "#endif",
            *(guard(n, text) for n, text in enumerate(self.pieces)),
            "#if !defined(ROUTINES_ALONE) && !defined(PIECE_ALONE)",
        ]

    def _shared_bytes(self):
        """Bytes of shared memory of a warp; of a block where there are routines."""
        if self.layout.by_warps:
            most = SHARED_OF_A_BLOCK[self.layout.large] - lists_bytes(_WARPS)
            fit = [
                room * max(1, min(_WARPS * WARP // threads, most // max(1, room)))
                for room, threads in self.language.rooms
            ]
            return lists_bytes(_WARPS) + max(fit, default=0)
        return (self.before_turned + 2 * WARP * len(self.language.turned)) * self.size

    @property
    def left_numbers(self):
        """Numbers of a sample that routines leave in the workspace, for other kernels."""
        return self.language.left_numbers if self.layout.by_warps else 0

    @property
    def before_turned(self):
        """Offset in a warp's shared memory at which sines and cosines begin [numbers]."""
        own = sum(self.results[a.name].numbers for a in self.separate) + self.kept.numbers
        own = 0 if self.layout.by_warps else own
        return self.tiled + own + (self.ahead.numbers_besides if self.ahead else 0)

    @property
    def tiled(self):
        """Size of the input tiles in a warp's shared memory [numbers]."""
        return self.ahead.numbers(self.tiles) if self.ahead else self.inputs_of_a_warp

    # --- one sample ------------------------------------------------------------------------------

    def _hidden_places(self):
        """Names and offsets of inputs that may be infinite or NaN without results showing it."""
        arguments = {a.name: a for a in self.program.inputs}
        return {(name, offset(arguments[name], index)) for name, index in self.hidden}

    def _watch(self):
        """CUDA lines that accumulate x · 0 of hidden inputs, which is NaN unless all are finite."""
        if not self.hidden:
            return []
        zero, places = self.language.constant(0.0), self._hidden_places()
        lines = [f"real watched = {zero};"]
        for name, first, end in runs(places - self.watched):
            own = f"work[{WARP} * i]" if name == WORK else f"{self.language.inputs[name]}[i]"
            lines += ["#pragma unroll 4", f"for (int i = {first}; i < {end}; i++)"]
            lines.append(f"    watched = fma{self.f}({own}, {zero}, watched);")
        return [*lines, f"if (!(watched == {zero})) status |= {NOT_FINITE};"]

    def _with_prefetches(self, ahead, items, entry):
        """CUDA lines of all assignments, with prefetches and values parked in shared memory."""
        ins, lines = self.language.inputs, [list(item.lines) for item in items]
        last = last_mentions(lines, [ins[name] for name in self.tiles])
        if ahead.slots:
            own = [ins[name] for name in ahead.twice if name not in self.taken.values()]
            slots = [(text, place) for text, place in last.items() if text.split("[")[0] in own]
            slots += [(f"parked[{WARP * k}]", -1) for k in range(ahead.slots)]
            lines = park(items, _IN_REGISTERS * 4 // self.size, slots)
        lines[int(_PREFETCHED * len(lines))] += entry.prefetching(0)
        for k, name in enumerate(ahead.again):
            end = max(place for text, place in last.items() if text.startswith(f"{ins[name]}["))
            lines[end] += entry.prefetching(k + 1)
        return lines

    def _sample(self, entry):
        """CUDA function that computes one sample."""
        ins, outs, given = self.language.inputs, self.language.outputs, set(self.taken.values())
        own = set(self.ahead.twice) if self.ahead and self.ahead.slots else set()
        parameters = [
            *(  # what is parked there would stay in registers if nothing else could change it
                f"{'' if a.name in given | own else 'const '}real *"
                f"{'' if a.name in own else '__restrict__ '}{ins[a.name]}"
                for a in self.inputs
            ),
            *(f"real *__restrict__ {outs[a.name]}" for a in self.separate),
        ]
        if self.kept.tables:
            parameters.append("real *__restrict__ kept")
        if self.layout.by_warps:
            parameters += ["const int active, const int at, real *block"]
        if self.part.work:
            parameters += ["const real *__restrict__ work", "real *__restrict__ left"]
        items = assignments(self.program, self.language, order=self.order)
        if self.language.turned:
            parameters.append("real *__restrict__ turned")
        turns = self.language.turns([x for x in self.language.turned if x.startswith("in_")])
        lines = [list(item.lines) for item in items]
        if self.ahead:
            parameters += ["const following *next, real *parked"]
            lines = self._with_prefetches(self.ahead, items, entry)
        body = [*self._watch(), *turns, *(line for some in lines for line in some)]
        if self.layout.by_warps:
            body, self.pieces, frame = outline(stored_early(body))
            self.helping = helping_lines(body, ENLIST)
            body = [*([f"real frame[{frame}];"] if frame else []), *body]
        return "\n".join(
            [
                f"DEVICE int sample({', '.join(parameters) or 'void'})",
                "{",
                "    int status = 0;",
                *(_OWN * self.layout.by_warps),
                *(f"    {line}" for line in body),
                "    return status;",
                "}",
            ]
        )

    def _registers(self):
        """Registers that a thread may use where routines are compiled apart; 0 otherwise."""
        most = _REGISTERS // (WARP * _WARPS)
        return min(most // 8 * 8, 248) if self.layout.by_warps else 0

    @property
    def separate(self):
        """Results with a separate tile: neither an input's tile nor sparse."""
        return [a for a in self.outputs if a.name not in {**self.taken, **self.kept.tables}]

    def bounds(self):
        """Arguments of ``__launch_bounds__``: threads of a block, and resident blocks."""
        resident = self.layout.resident
        if self.layout.by_warps:
            return f"{WARP * _WARPS}, 1"
        if resident is None:
            waiting = self._waiting()
            resident = next((n for most, n in _RESIDENT.items() if waiting <= most), 0)
        return f"{LARGEST_BLOCK}, {resident}" if resident else str(LARGEST_BLOCK)
