"""LLVM's NVPTX target: passes over text, PTX, and machine code of a GPU.

PTX is assembled by ``ptxas`` where it is found, one unit on each core, or else by the driver; the
driver links. Everything is kept on disk by its digest.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from functools import cache, partial
from pathlib import Path

from kinetree.codegen import nvrtc
from kinetree.codegen.cache import open_store
from kinetree.codegen.keys import program_key
from kinetree.codegen.machine_code import compiling
from kinetree.codegen.runtime.threads import map_on_cores
from kinetree.errors import BackendError

TRIPLE = "nvptx64-nvidia-cuda"
_CPU, _FEATURES = "sm_70", "+ptx64"  # which knows the lanes that are active
_CUBIN, _PTX = 0, 1  # kinds of what is linked, as the driver counts them
_REGISTERS = 128


def _module(llvm, text):
    """LLVM IR parsed for the NVPTX target in a separate context, and the target machine."""
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(cpu=_CPU, features=_FEATURES, opt=3)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    return module, machine


def optimise(text: str) -> str:
    """Run LLVM's optimisation passes on IR for a GPU, without vectorisation and unrolling."""
    with compiling() as llvm:
        module, machine = _module(llvm, text)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return str(module)


def ptx(text: str) -> str:
    """Compile LLVM IR to PTX, or read it from the disk cache."""
    key = program_key(_digest("ptx", text), _CPU)
    kept = open_store().get(key)
    if kept is None:
        with compiling() as llvm:
            module, machine = _module(llvm, text)
            kept = machine.emit_assembly(module).encode()
        open_store().put(key, kept)
    return kept.decode()


@cache
def assembler() -> str | None:
    """Path of the program ``ptxas``, from PATH or NVIDIA's packages; None where it is missing."""
    found = shutil.which("ptxas")
    for name in ("nvidia.cu13", "nvidia.cuda_nvcc", "triton.backends.nvidia"):
        if found is None:
            try:
                spec = importlib.util.find_spec(name)
            except (ImportError, ValueError):
                spec = None
            for folder in (spec.submodule_search_locations or ()) if spec else ():
                path = Path(folder) / "bin" / "ptxas"
                found = str(path) if os.access(path, os.X_OK) else found
    return found


def assemble(text: str, architecture: str, registers: int = _REGISTERS) -> bytes:
    """Assemble PTX with ``ptxas`` to relocatable machine code, with at most ``registers`` each."""
    path = assembler()
    if path is None:
        raise BackendError("ptxas is not found: install nvidia-cuda-nvcc, or CUDA's toolkit")
    key = program_key(_digest("assembled", text), f"sm_{architecture}, {registers}")
    kept = open_store().get(key)
    if kept is None:
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder) / "unit.ptx", Path(folder) / "unit.cubin"
            source.write_text(text)
            options = ["-c", f"-arch=sm_{architecture}", f"-maxrregcount={registers}"]
            run = subprocess.run(
                [path, *options, str(source), "-o", str(out)], capture_output=True, text=True
            )
            if run.returncode:
                raise BackendError(f"ptxas does not assemble a unit: {run.stderr[:2000]}")
            kept = out.read_bytes()
        open_store().put(key, kept)
    return kept


def link(texts: dict[str, str], device: int, registers: int = _REGISTERS) -> bytes:
    """Machine code (cubin) for a device, linked from LLVM IR of several units; cached on disk."""
    architecture = nvrtc.architecture(device)
    whole = _digest("linked", *texts.values())
    key = program_key(whole, f"sm_{architecture}, {registers}")
    kept = open_store().get(key)
    if kept is None:
        sources = {name: ptx(text) for name, text in texts.items()}
        if assembler() is not None:
            one = partial(assemble, architecture=architecture, registers=registers)
            parts = dict(zip(sources, map_on_cores(one, [*sources.values()]), strict=True))
            kept = _link(parts, _CUBIN)
        else:
            kept = _link({name: text.encode() for name, text in sources.items()}, _PTX)
        open_store().put(key, kept)
    return kept


def _link(parts, kind):
    """Link units of machine code or PTX by the CUDA driver."""
    nvrtc.cupy().cuda.runtime.free(0)  # makes a context where there is none
    state = nvrtc.driver().linkCreate()
    try:
        for name, code in parts.items():
            nvrtc.driver().linkAddData(state, kind, code, name)
        return nvrtc.driver().linkComplete(state)
    except nvrtc.driver().CUDADriverError as error:
        raise BackendError(f"the driver does not link the code of worlds: {error}") from error
    finally:
        nvrtc.driver().linkDestroy(state)


def _digest(*parts):
    """SHA-256 digest of texts, as hexadecimal digits."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
