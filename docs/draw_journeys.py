"""Draw the four journeys through the source, for docs/design.md.

    python docs/draw_journeys.py [folder]

A journey is a list of lanes, and a lane a list of stops: what happens, where, and what it is. Text
is wrapped by counting characters, so that the pictures are the same wherever they are drawn.
"""

import sys
import textwrap
from html import escape
from pathlib import Path

STOPS = 3  # in a row
WIDE, GAP, LANE = 238, 26, 34
CHARACTERS = {"title": 25, "where": 35, "what": 31}
LINE = {"title": 17, "where": 14, "what": 15}
STYLE = """
  text { font-family: system-ui, sans-serif; font-size: 12.5px; fill: #263238 }
  .lane { font-size: 14px; font-weight: 600; fill: #37474f }
  .title { font-size: 14px; font-weight: 600 }
  .where { font-family: ui-monospace, monospace; font-size: 10.5px; fill: #bf360c }
  .stop { fill: #eceff1; stroke: #90a4ae }
  .way { stroke: #546e7a; stroke-width: 1.6; fill: none; marker-end: url(#head) }
"""

JOURNEYS = {
    "call": {
        "The first call of kt.jacobian(m, q, 'hand')": [
            (
                "Bind",
                "model/define.py",
                "checks names and options; arrays are inputs, the rest is compiled in",
            ),
            (
                "Kernel",
                "model/kernels.py",
                "kernel_for makes the one kernel of this model and these options",
            ),
            (
                "Tier",
                "codegen/tiers.py",
                "samples so far decide: general code, or specialised for this robot",
            ),
            (
                "Find",
                "codegen/build.py, cache.py",
                "machine code in memory or on disk, by content; then nothing is traced",
            ),
            (
                "Trace",
                "codegen/program.py",
                "the algorithm runs on symbols; the cheapest program is taken",
            ),
            (
                "Render",
                "codegen/render/llvm.py",
                "blocks, slots of the workspace, LLVM IR: a SIMD lane a sample",
            ),
            ("Compile", "codegen/machine_code.py", "LLVM; the object code is kept on disk"),
            (
                "Compute",
                "codegen/runtime/kernel.py",
                "Kernel.full: batches, precision, threads; bad samples back to Python",
            ),
        ],
        "Every call after it": [
            ("Look up", "model/door.py", "model.kernels[...]: one dictionary, no other Python"),
            (
                "Lean path",
                "codegen/runtime/single.py",
                "a built-in function in machine code checks, allocates, computes",
            ),
        ],
        "Arrays of torch, JAX or CuPy": [
            (
                "Kind",
                "arrays/kinds.py",
                "which library, which device, whether derivatives are followed",
            ),
            (
                "Derived kernel",
                "codegen/runtime/derived.py",
                "rates, gradients, transposes of the same program",
            ),
            (
                "CUDA C",
                "codegen/render/cuda_pieces.py",
                "a thread a sample; rows of a warp go through shared memory",
            ),
            (
                "Launch",
                "codegen/nvrtc.py, runtime/cuda.py",
                "compiled once, kept on disk, on the caller's stream",
            ),
        ],
    },
    "step": {
        "Four doors": [
            ("World.step", "worlds/world.py, stepping.py", "a batch of one; forces by name"),
            ("simulate", "simulation/simulate.py", "all steps up to the next call of Python"),
            ("rollout", "simulation/rollouts/engine_run.py", "a batch, all steps at once"),
            ("Environment", "learning/engine_steps.py", "a batch, the steps of one action"),
        ],
        "One machine": [
            (
                "Machine",
                "contact/engine/machine.py",
                "rows of numbers: put a state, hold inputs, advance",
            ),
            (
                "advance",
                "contact/engine/advance.py",
                "one native call: motion after motion, step after step",
            ),
            (
                "one_more",
                "contact/engine/step.py",
                "again with more room where a table was too small",
            ),
        ],
        "The pipeline of take_step, contact/engine/step.py": [
            (
                "drive",
                "drives.py, springs.py",
                "forces of actuators, springs and tendons, and how they resist",
            ),
            (
                "positions",
                "mechanism.py, terms.py",
                "middle of the step: poses, motion subspaces, inertias",
            ),
            (
                "find_contacts",
                "collision/detect.py",
                "pairs that can touch: features, gaps, normals",
            ),
            (
                "free_velocities",
                "mechanism.py, drives.py",
                "inertia with resistance, factored; velocities without contact",
            ),
            (
                "make_rows",
                "contact_rows.py, joint_rows.py",
                "contacts, stops, dry friction, loops that can act",
            ),
            (
                "solve_step",
                "solving.py, contact/newton/",
                "islands by Newton's method, until geometry and laws agree",
            ),
            (
                "move, keep_energy",
                "moving.py, energy.py",
                "positions without overlaps; the ledger of the step",
            ),
            ("record_step", "step.py", "the state, overlaps, what the next step begins with"),
        ],
    },
    "rollout": {
        "kt.rollout of arrays on a GPU: the step unrolled for one scene": [
            (
                "Stand in",
                "simulation/rollouts/other_arrays.py",
                "one harmless sample of every array makes the run",
            ),
            (
                "Choose",
                "contact/stepping/choice.py",
                "unrolled while short, slots for the contacts that act otherwise",
            ),
            (
                "Trace",
                "integration/step.py",
                "steps up to the next stored state are one program, a loop within it",
            ),
            (
                "CUDA C",
                "codegen/render/cuda_pieces.py",
                "a thread a sample; with procedures, 4 or 32 lanes a sample",
            ),
            ("Compile", "codegen/nvrtc.py", "pieces at the same time, linked, kept on disk"),
            (
                "Launch",
                "codegen/runtime/cuda.py",
                "states stay on the device from launch to launch",
            ),
        ],
        "Copies of a kt.World on a GPU: the engine itself": [
            (
                "DeviceWorlds",
                "worlds/device.py",
                "states, controls, forces as arrays of the device",
            ),
            (
                "Image",
                "contact/engine/device/image.py",
                "all words an engine reaches, copied for every world",
            ),
            (
                "Interleave",
                "codegen/device/interleaved.py",
                "LLVM's text of all procedures, 32 worlds word by word",
            ),
            (
                "Assemble",
                "codegen/device/assembly.py",
                "PTX and machine code; calls by address become a switch",
            ),
            (
                "Step",
                "contact/engine/device/machine.py",
                "a thread a world; a world that needs more room asks for it",
            ),
        ],
    },
    "robot": {
        "kt.load of a file": [
            ("Format", "loaders/load.py", "FORMATS, by name and content"),
            (
                "Read",
                "loaders/urdf, mjcf, sdf, usd, toml",
                "elements become parts; what a model cannot say is a notice",
            ),
            ("Validate", "model/validate.py", "once; errors name the element and what to do"),
            (
                "Model",
                "model/model.py",
                "immutable from now on; its fingerprint is a digest of its content",
            ),
        ],
        "Its first results": [
            (
                "Kinds and numbers",
                "model/general/tables.py",
                "class of joint, axis, base, armature; all else are numbers",
            ),
            (
                "Code of the kinds",
                "model/general/kernels.py",
                "found on disk; a kind never seen is recorded and compiled alone",
            ),
            (
                "Bind",
                "codegen/runtime/loops.py",
                "a table of addresses, integers and numbers: a millisecond",
            ),
            ("Call", "codegen/runtime/single.py", "as any other kernel"),
        ],
        "After many samples": [
            (
                "Count",
                "codegen/tiers.py",
                "2¹⁶ samples repay LLVM's optimisations, 2²⁰ code for one robot",
            ),
            (
                "Specialise",
                "codegen/program.py, render/llvm.py",
                "unrolled, constants folded in; results agree to rounding",
            ),
        ],
    },
}


def lines_of(stop):
    """Wrapped lines of a stop with their classes."""
    return [
        (kind, line)
        for kind, text in zip(CHARACTERS, stop, strict=True)
        for line in textwrap.wrap(text, CHARACTERS[kind], break_long_words=False)
    ]


def height_of(stop):
    """Height of the box of a stop."""
    return 16 + sum(LINE[kind] for kind, _ in lines_of(stop))


def box(stop, x, y, height):
    """Rectangle and text of a stop."""
    yield f'<rect class="stop" x="{x}" y="{y}" width="{WIDE}" height="{height}" rx="6"/>'
    at = y + 4
    for kind, line in lines_of(stop):
        at += LINE[kind]
        yield f'<text class="{kind}" x="{x + 10}" y="{at}">{escape(line)}</text>'


def lane(title, stops, y, in_parallel):
    """Elements of a lane and where it ends: rows of stops with arrows from one to the next."""
    found = [f'<text class="lane" x="{GAP}" y="{y + 14}">{escape(title)}</text>']
    y += LANE - 8
    for first in range(0, len(stops), STOPS):
        row = stops[first : first + STOPS]
        height = max(map(height_of, row))
        for k, stop in enumerate(row):
            x = GAP + k * (WIDE + GAP)
            found += box(stop, x, y, height)
            if k and not in_parallel:
                middle = y + height / 2
                found.append(f'<path class="way" d="M{x - GAP},{middle} h{GAP - 3}"/>')
        y += height + GAP
        if first + STOPS < len(stops) and not in_parallel:
            right, left = GAP + STOPS * WIDE + (STOPS - 1) * GAP - WIDE / 2, GAP + WIDE / 2
            found.append(
                f'<path class="way" d="M{right},{y - GAP} v{GAP / 2} H{left} v{GAP / 2 - 3}"/>'
            )
    return found, y


def picture(name):
    """Text of the SVG file of a journey."""
    found, y = [], 12
    for title, stops in JOURNEYS[name].items():
        added, y = lane(title, stops, y, title == "Four doors")
        found += added
    width = GAP + STOPS * (WIDE + GAP)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" '
        f'height="{y}" role="img">'
    )
    arrow = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#546e7a"/></marker></defs>'
    )
    paper = f'<rect width="{width}" height="{y}" fill="#ffffff" rx="8"/>'
    parts = [head, f"<style>{STYLE}</style>", arrow, paper, *found, "</svg>"]
    return "\n".join(parts) + "\n"


def main(folder):
    """Write all pictures."""
    for name in JOURNEYS:
        path = Path(folder) / f"journey_{name}.svg"
        path.write_text(picture(name), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("images"))
