"""Where the time of a step with slots goes: cycles of a warp by stage, read from its clock.

    python benchmarks/gpu_stages.py FOLDER stack hand balls    scenes of gpu_worlds.py --write

The texts of the kernels get lines that read the clock around routines and around some procedures
inside them. Columns: cycles of a warp of the first block, on average, for some steps of its worlds.
"""

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gpu_worlds
import numpy as np

import kinetree as kt
from kinetree.codegen.render import cuda, cuda_pieces

INSIDE = (
    "sweep_slots", "finish_by_newton", "laws", "solve_newton_system", "contact_rows", "take_slots",
    "list_near", "place_near", "near_pairs_of", "place_balls", "enter_contacts", "gap_rates",
    "pair_gaps", "speeds", "effect_of_impulses",
    "list_points", "gaps", "sort_slots", "enter_problem", "sweep_until", "mix", "newton_steps",
    "order_trees", "couple_trees", "gained_across", "press", "speeds_of", "report_impulses",
)  # fmt: skip
"""Procedures whose calls all lanes reach."""
NUMBERS = 48
"""Stages, at most; the first is the whole."""
BYTES = 8 * NUMBERS * 8
"""Of the clocks of a block."""
_HEAD = """
#define CLOCKS_OF_A_BLOCK ((long long *)((char *)shared + BYTES_OF_LISTS - {0}))
#define STAGE(n) (CLOCKS_OF_A_BLOCK[(threadIdx.x >> 5) * {1} + (n)])
#define ENTERED(n) {{ extern __shared__ vector16 shared[]; __syncwarp(); \\
    if (!(threadIdx.x & 31)) STAGE(n) -= clock64(); }}
#define LEFT(n) {{ extern __shared__ vector16 shared[]; __syncwarp(); \\
    if (!(threadIdx.x & 31)) STAGE(n) += clock64(); }}
"""
_PRINT = """for (int n = 0; n < {0}; n++) {{
    long long all = 0;
    for (int k = 0; k < blockDim.x >> 5; k++) all += CLOCKS_OF_A_BLOCK[k * {1} + n];
    printf("STAGE %d %lld\\n", n, all / (blockDim.x >> 5)); }}"""


def staged(text: str, names: list[str]) -> str:
    """A text that reads the clock around stages, whose names are appended to ``names``."""
    size = re.search(r"#define BYTES_OF_LISTS (\d+)", text)
    if size is None or "ROUTINE_VOID" not in text:
        return text
    names.append("all")
    calls = (
        rf"(?:\w+ = )?(?:{'|'.join(INSIDE)})(?:_by_\d+)?\(.*\);|(?:slot|coupled)_\w+_\d+\(live.*\);"
    )

    def timed(found):
        call = found[2]
        name = re.match(r"(?:\w+ = )?(\w+)\(", call)[1]  # pyright: ignore[reportOptionalSubscript]
        if name not in names:
            names.append(name)
        n = names.index(name)
        return f"{found[1]}{{ ENTERED({n}) {call} LEFT({n}) }}"

    text = re.sub(rf"^( +)({calls})$", timed, text, flags=re.MULTILINE)
    room = f"#define BYTES_OF_LISTS {int(size[1]) + BYTES}"
    text = text.replace(size[0], room + _HEAD.format(BYTES, NUMBERS))
    zero = f"if (!(threadIdx.x & 31)) for (int n = 0; n < {NUMBERS}; n++) STAGE(n) = 0;"
    call = re.search(r"^ +const int status = sample\(.*$", text, flags=re.MULTILINE)
    assert call is not None
    show = _PRINT.format(len(names), NUMBERS)
    first = f"__syncthreads(); if (blockIdx.x == 0 && threadIdx.x == 0) {show}"
    helping = re.search(
        r"^ +if \(warp \* each >= samples\) \{\n +help\(block\);", text, re.MULTILINE
    )
    assert helping is not None
    text = text.replace(helping[0], "\n".join([zero, "ENTERED(0)", helping[0], "LEFT(0)"]))
    return text.replace(call[0], "\n".join([call[0], "LEFT(0)", first]))


def with_stages(render: Callable) -> Callable:
    """``render_pieces`` whose texts read the clock; names of stages are its ``names``."""

    def rendered(*given):
        pieces = render(*given)
        texts, rendered.names = [], []
        for piece in pieces.texts:
            text = staged(piece.text, rendered.names)
            more = BYTES if text != piece.text else 0
            texts.append(replace(piece, text=text, shared=piece.shared + more))
        return replace(pieces, texts=tuple(texts))

    return rendered


def measure(name: str, world: kt.World, n: int) -> None:
    """Roll a scene out, and wait for what its first warp prints."""
    import cupy

    contact = kt.contact.TimeStepping(kt.contact.Scene(world.model), slots=gpu_worlds.SLOTS[name])
    given = {k: cupy.asarray(x, "float32") for k, x in gpu_worlds.inputs(name, world).items()}
    if "control" in given:
        given["controls"] = given.pop("control")
    options = {"dt": world.timestep, "contact": contact, "limits": "stiff", "friction": "smooth"}
    q = cupy.asarray(np.tile(world.q, (n, 1)), dtype="float32")
    qd = cupy.asarray(gpu_worlds.deviations(world, n, gpu_worlds.DIFFERENCE), dtype="float32")
    kt.rollout(world.model, q, qd, steps=1, **options, **given)
    with gpu_worlds.on_quiet_device():
        steps = gpu_worlds.STEPS[name]
        for _ in range(3):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            print(f"{name}, {steps} steps", flush=True)
            begin.record()
            found = kt.rollout(
                world.model, q, qd, steps=steps, store_every=steps, **options, **given
            )
            end.record()
            end.synchronize()
            rate = n * steps / cupy.cuda.get_elapsed_time(begin, end) / 1e3
            print(f"{name}: {rate:.2f} M/s with clocks", flush=True)
            q, qd = found.q[-1], found.qd[-1]


def main() -> None:
    """Print the stages of some scenes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--worlds", type=int, default=8192)
    options = parser.parse_args()
    cuda_pieces.render_pieces = with_stages(cuda_pieces.render_pieces)
    for large in cuda.SHARED_OF_A_BLOCK:  # room for the clocks
        cuda.SHARED_OF_A_BLOCK[large] -= BYTES
    for name in options.scenes:
        world = kt.World.load(options.folder / f"{name}.npz")
        measure(name, world, options.worlds)
        names = cuda_pieces.render_pieces.names
        print(f"{name}:", *(f"{n} {x}" for n, x in enumerate(names)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
