"""The entry point of a kernel in CUDA C: how the warps of a grid go through the samples."""

from dataclasses import dataclass
from importlib import resources

from kinetree.codegen.render.c import NOT_FINITE
from kinetree.codegen.render.cuda_places import PITCH, WARP
from kinetree.codegen.render.minimax import RANGE


class EntryPoints:
    """The functions ``load`` and ``run``.

    Args:
        plan: what ``cuda.py`` has decided.
    """

    def __init__(self, plan):
        self.plan = plan
        self.loaded = bool(plan.tiles)
        ahead = plan.ahead
        self.portions = [ahead.twice, *((name,) for name in ahead.again)] if ahead else []

    def load(self):
        """CUDA function that starts the copies of all inputs into their tiles."""
        parameters, dense, any_rows = [], [], []
        for name, tile in self._tiles():
            parameters.append(f"real *{name}_tile, const real *{name}, long long {name}_step")
            given = f"({name}_tile, {tile.size}, {tile.group}, {name}"
            dense.append(f"if ({name}_step) load_dense{given} + first * {tile.size});")
            dense.append(f"else load_shared{given});")
            any_rows.append(f"load_rows{given} + first * {name}_step, {name}_step, rows);")
        if not self.loaded:
            return ""
        return "\n".join(
            [
                "DEVICE void load(long long first, long long count, int dense,",
                "                 " + ", ".join(parameters) + ")",
                "{",
                "    if (dense && count - first >= 32) {",
                *(f"        {line}" for line in dense),
                "    } else {",
                "        const int rows = count - first < 32 ? (int)(count - first) : 32;",
                *(f"        {line}" for line in any_rows),
                "    }",
                "}",
            ]
        )

    def _tiles(self):
        """Names of the inputs with tiles in the CUDA text, and the tiles, in memory order."""
        names = [name for some in self.portions for name in some] or self.plan.tiles
        return [(self.plan.language.inputs[name], self.plan.tiles[name]) for name in names]

    def following(self):
        """CUDA struct of a warp's next samples, and functions that prefetch their tiles."""
        if not self.plan.ahead:
            return ""
        lines = ["typedef struct {", "    int more, mine;", "    long long first;"]
        lines += ["    real *tiles, *only;", "    counter *landed;"]
        lines += [f"    const real *{name};" for name, _ in self._tiles()]
        lines.append("} following;")
        place = 0
        for k, names in enumerate(self.portions):
            base, place = "next->only" if k else "next->tiles", 0 if k == 1 else place
            requests, copied, size = [], [], 0
            for name in names:
                tile, text = self.plan.tiles[name], self.plan.language.inputs[name]
                at, rows = f"{base} + {place}", f"next->{text} + next->first * {tile.size}"
                if tile.group:
                    copied.append(f"load_dense({at}, {tile.size}, {tile.group}, {rows});")
                else:
                    requests.append(f"request({at}, {tile.size}, {rows}, next->landed);")
                    size += tile.size
                place += tile.numbers
            requests.append(f"requested(next->landed, {size});")
            for what, texts in (("request", requests), ("copy", copied)):
                lines += ["", f"DEVICE void {what}_{k}(const following *next)", "{"]
                lines += [*(f"    {text}" for text in texts), "}"]
        return "\n".join(lines)

    def prefetching(self, portion):
        """CUDA lines that start one portion of the prefetches within the program."""
        lines = ["__syncwarp();"] if portion else ["if (next->mine) finish_stores();"]
        lines.append(f"if (next->mine) request_{portion}(next);")
        if any(self.plan.tiles[name].group for name in self.portions[portion]):
            lines.append(f"if (next->more) copy_{portion}(next);")
        return lines

    def run(self):
        """CUDA text of the kernel ``run``."""
        ins = self.plan.language.inputs
        parameters = [
            "long long count, long long dense",
            *(f"const real *{ins[a.name]}, long long {ins[a.name]}_step" for a in self.plan.inputs),
            *(f"real *{result_name(a.name)}" for a in self.plan.part.outputs),
        ]
        if self.plan.part.work or self.plan.left_numbers:
            parameters.append("real *work")
        step = "(long long)gridDim.x * blockDim.x"
        outer = [
            "extern __shared__ vector16 shared[];",
            "const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
            *(_OF_BLOCK if self.plan.layout.by_warps else _OF_WARP),
        ]
        if self.plan.ahead:
            landed = f"(counter *)(inputs + {self.plan.before_turned - 4})"
            names = [name for name, _ in self._tiles()]
            outer += [
                f"const int apart = dense && {' && '.join(f'{name}_step' for name in names)};",
                f"following its = {{0, 0, first, inputs, inputs + {2 * self._between}, {landed}}};",
                *(f"its.{name} = {name};" for name in names),
                "its.more = apart && count - first >= 32;",
                "its.mine = its.more && REQUESTS;",
                "const following *const next = &its;",
                f"expect_tiles(next->landed, {len(self.portions)});",
                *(line for k in range(len(self.portions)) for line in self.prefetching(k)),
                f"for (int set = 0, phase = 0; first < count; first += {step}, set ^= 1) {{",
                *(f"    {line}" for line in self._turn(step)),
                "    __syncwarp();",
                "}",
                "if (REQUESTS) finish_stores();",
            ]
        else:
            outer += self._turn(step)
        text = "\n".join(f"    {line}" for line in outer)
        head = f"ENTRY void __launch_bounds__({self.plan.bounds()}) run(\n    "
        return head + ",\n    ".join(parameters) + f")\n{{\n{text}\n}}"

    @property
    def _between(self):
        """Distance between the two tiles of a double-buffered input [numbers]."""
        return sum(self.plan.tiles[name].numbers for name in self.plan.ahead.twice)

    def _fill_tiles(self):
        """CUDA lines that fill the tiles of inputs, or wait for tiles prefetched before."""
        given = ", ".join(f"{name}_tile, {name}, {name}_step" for name, _ in self._tiles())
        now = [f"load(first, count, (int)dense, {given});", "finish_loads();"]
        if not self.plan.ahead:
            return now
        copied = any(tile.group for _, tile in self._tiles())
        return [
            "if (apart && rows == 32) {",
            "    wait_for_tiles(next->landed, phase);",
            *["    finish_loads();"] * copied,
            "    phase ^= 1;",
            "} else {",
            "    if (REQUESTS) finish_stores();  /* those of the turn before the last */",
            "    __syncwarp();",
            *(f"    {line}" for line in now),
            "}",
        ]

    def _turn(self, step):
        """CUDA lines by which a warp loads, computes and stores 32 samples."""
        lines = [
            "const int rows = count - first < 32 ? (int)(count - first) : 32;",
            "const int whole = dense && rows == 32;",
            "(void)whole;",
            "real *free = inputs;",
        ]
        if self.plan.layout.by_warps:
            places = "(long long)blockIdx.x * places * (32 * NUMBERS_OF_A_SAMPLE)"
            work = f"work + {places}" if self.plan.left_numbers else "0"
            lines = [f"real *const block = {work};", *_HELPING]
        if self.plan.ahead:
            lines[-1] = f"real *free = inputs + set * {self._between};"
            lines += [
                f"its.first = first + {step};",
                "its.more = apart && count - its.first >= 32;",
                "its.mine = its.more && REQUESTS;",
                f"its.tiles = inputs + (set ^ 1) * {self._between};",
            ]
        ins = self.plan.language.inputs
        for k, names in enumerate(self.portions or [self.plan.tiles]):
            lines += ["free = next->only;"] * (k == 1)
            for name in names:
                lines += self._place_row(ins[name], self.plan.tiles[name])
        for a in self.plan.inputs:
            lines += [] if a.name in self.plan.tiles else self._place_row(ins[a.name], None)
        if not self.plan.layout.by_warps:
            lines.append(f"free = inputs + {self.plan.tiled};")
        for a in self.plan.separate:
            if self.plan.layout.by_warps:
                to = f"{result_name(a.name)} + {self._row} * {a.size}"
                lines.append(f"real *const part_{a.name}_own = {to};")
                continue
            lines += self._place_row(f"part_{a.name}", self.plan.results[a.name])
        if self.plan.kept.tables:
            lines.append("real *const kept = free, *const kept_own = kept + lane;")
            lines.append(f"kept_own[0] = {self.plan.language.constant(0.0)};")
        lines += self._fill_tiles() if self.loaded else []
        return [*lines, *self._moderate_angles(), *self._call(), *self._stores()]

    @property
    def _row(self):
        """Text of the number of a thread's sample."""
        return "(first + at)" if self.plan.layout.by_warps else f"(first + {_ROW})"

    def _place_row(self, name, tile):
        """CUDA lines that place a tile in shared memory, and find this thread's row in it."""
        if tile is None:
            return [f"const real *const {name}_own = {name} + {self._row} * {name}_step;"]
        own = f"lane * {tile.pitch} + skipped(lane, {tile.group})"
        return [
            f"real *const {name}_tile = free, *const {name}_own = {name}_tile + {own};",
            f"free += {tile.numbers};",
        ]

    def _moderate_angles(self):
        """CUDA lines that check whether all angles of a sample are within range of fast sines."""
        if not self.plan.angles:
            return []
        name, found, f = self.plan.language.inputs, runs(self.plan.angles), self.plan.f
        zero, bound = map(self.plan.language.constant, (0.0, RANGE[self.plan.dtype] ** 2))
        near, each = [f"real far = {zero}, watched = {zero};", "(void)watched;"], []
        for argument, first, end in found:
            x, loop = f"{name[argument]}_own[i]", f"for (int i = {first}; i < {end}; i++)"
            near += ["#pragma unroll", f"{loop} far = fma{f}({x}, {x}, far);"]
            each += ["#pragma unroll 1", f"    {loop} {x} = reduced({x});"]
        watch = [
            f"    watched = fma{f}({name[argument]}_own[{k}], {zero}, watched);"
            for argument, k in sorted(self.plan.watched)
        ]
        return [*near, f"if (!(far <= {bound})) {{", *watch, *each, "}"]

    def _call(self):
        """CUDA lines that call the function of one sample."""
        arguments = [f"{self.plan.language.inputs[a.name]}_own" for a in self.plan.inputs]
        arguments += [f"part_{a.name}_own" for a in self.plan.separate]
        lines = []
        if self.plan.kept.tables:
            arguments.append("kept_own")
        if self.plan.layout.by_warps:
            arguments += ["active", "at", "block"]
        if self.plan.part.work:
            lines = [f"real *const work_own = work + first * {self.plan.part.work} + lane;"]
            arguments += ["work_own"] * 2
        if self.plan.language.turned:
            lines.append(f"real *const turned_own = inputs + {self.plan.before_turned} + lane;")
            arguments.append("turned_own")
        if self.plan.ahead:
            parked = self.plan.before_turned - self.plan.ahead.numbers_besides
            arguments += ["next", f"inputs + {parked} + lane"]
        status = f"sample({', '.join(arguments)})"
        if self.plan.watched:
            status += f" | (watched == {self.plan.language.constant(0.0)} ? 0 : {NOT_FINITE})"
        return [*lines, f"const int status = {status};"]

    def _tile(self, output):
        """Name of the tile of a result."""
        source = self.plan.taken.get(output)
        return self.plan.language.inputs[source] if source else f"part_{output}"

    def _stores(self):
        """CUDA lines that copy results to memory; NaN for samples that failed a check."""
        lines = ["(void)status;"]
        if self.plan.program.checks or self.plan.hidden:
            lines = ["if (status) {", *(f"    {line}" for line in self._all_wrong()), "}"]
            if self.plan.part.status is not None:
                wrong = f'status ? nan{self.plan.f}("") : {self.plan.language.constant(0.0)}'
                lines.append(f"work_own[{WARP * self.plan.part.status}] = {wrong};")
        if self.plan.layout.by_warps:
            return lines
        lines += ["announce();"] * bool(self.plan.ahead) + ["__syncwarp();"]
        for name, t in self.plan.results.items():
            to = f"{result_name(self.plan.part.slices[name][0])} + first * {t.step} + {t.start}"
            if name in self.plan.kept.tables:
                lines.append(
                    f"store_kept({to}, {t.step}, kept, table_{name}, {t.size}, rows, "
                    f"{0 if t.step % 4 else 'dense'}, {min(-t.start % 4, t.size)});"
                )
            elif t.is_slice:
                lines.append(
                    f"store_slice({to}, {t.step}, {self._tile(name)}_tile, {t.size}, {t.pitch}, "
                    f"rows, dense);"
                )
            else:
                given = f"({to}, {self._tile(name)}_tile, {t.size}"
                alone = self.plan.ahead and name in self.plan.taken and not t.group
                whole = f"start_store{given}" if alone else f"store_dense{given}, {t.group}"
                lines.append(f"if (whole) {whole});")
                lines.append(f"else store_rows{given}, {t.group}, rows);")
        return lines

    def _all_wrong(self):
        """CUDA lines that set all results of a sample to NaN."""
        nan, lines = f'nan{self.plan.f}("")', []
        for name, tile in self.plan.results.items():
            if name not in self.plan.kept.tables:
                own = f"{self._tile(name)}_own[i]"
                lines.append("#pragma unroll 1")
                lines.append(f"for (int i = 0; i < {tile.size}; i++) {own} = {nan};")
        if self.plan.kept.tables:
            end = self.plan.kept.count * PITCH
            lines.append("#pragma unroll 1")
            lines.append(f"for (int i = 0; i < {end}; i += {PITCH}) kept_own[i] = {nan};")
        return lines

    def tables(self):
        """CUDA tables with the place of each number of a sparse result in shared memory."""
        for name, places in self.plan.kept.tables.items():
            numbers = ", ".join(str(PITCH * place) for place in places)
            yield f"static __device__ const int table_{name}[] = {{{numbers}}};"


BUSY_WARPS = 4
"""Warps of a block that its samples fill first: one for each scheduler."""
_OF_WARP = [
    "long long first = (long long)blockIdx.x * blockDim.x + warp * 32;",
    "if (first >= count) return;",
    "real *const inputs = (real *)((char *)shared + warp * BYTES_OF_A_WARP);",
]
_OF_BLOCK = [  # ``dense`` is the number of samples of a block
    "const long long first = blockIdx.x * dense;",
    "const int samples = count - first < dense ? (int)(count - first) : (int)dense;",
    f"const int warps = blockDim.x >> 5, busy = warps < {BUSY_WARPS} ? warps : {BUSY_WARPS};",
    "const int few = (int)((dense + busy - 1) / busy), each = few < 32 ? few : 32;",
    "const int own = warp * each + lane, active = lane < each && own < samples;",
    "const int at = active ? own : 0, places = (int)((dense + 31) / 32);",
    "(void)places;",
]
_HELPING = [
    "if (warp * each >= samples) {",
    "    help(block);",
    "    return;",
    "}",
]
_ROW = "(lane < rows ? lane : rows - 1)"  # of a thread that has no sample: that of the last one


def result_name(name):
    """Name of an output of the entry point."""
    return f"result_{name}"


def runs(places):
    """Join places (argument, offset) to sorted ranges (argument, first, end)."""
    found = []
    for argument, place in sorted(places):
        if found and found[-1][0] == argument and found[-1][2] == place:
            found[-1][2] += 1
        else:
            found.append([argument, place, place + 1])
    return found


# --- What every text in CUDA C begins with -------------------------------------------------------


@dataclass(frozen=True)
class CudaText:
    """CUDA C."""

    text: str
    """The whole of it."""
    shared: int
    """Bytes of shared memory for each 32 threads of a block; for all ``threads`` of one."""
    ahead: bool
    """Whether warps load ahead, so that there should be no more of them than fit."""
    light: bool = False
    """Whether memory limits it, so that less optimization loses nothing."""
    left: int = 0
    """Numbers of a sample that routines leave in a workspace."""
    apart: int = 0
    """Where routines are compiled apart from the program: registers of a thread."""
    threads: int = 0
    """Where there are routines: threads of a block, which ``shared`` is for."""


def head(dtype, shared) -> str:
    """First lines of CUDA text: types, macros, and the functions of ``cuda_tiles.cuh``.

    Args:
        dtype: ``"float32"`` or ``"float64"``.
        shared: bytes of shared memory of a warp.
    """
    single = dtype == "float32"
    lines = [
        f"typedef {'float' if single else 'double'} real;",
        f"typedef {'float4' if single else 'double2'} vector16;",
        f"#define NUMBERS_IN_16_BYTES {4 if single else 2}",
        f"#define BYTES_OF_A_WARP {shared}",
        "#define DEVICE static __device__ __forceinline__",
        "#ifdef __cplusplus",
        '#define ENTRY extern "C" __global__',
        "#else",
        "#define ENTRY __global__",
        "#endif",
        "#ifndef INFINITY",
        "#define INFINITY __int_as_float(0x7f800000)",
        "#endif",
        "",
    ]
    tiles = resources.files("kinetree.codegen.render").joinpath("cuda_tiles.cuh")
    return "\n".join(lines) + "\n" + tiles.read_text("utf-8")
