"""Kernels on a device that is not there: what is compiled, kept, and launched with what."""

import ctypes
import subprocess
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from support.walks import KINDS, PROGRAM

import kinetree as kt
from kinetree.codegen import nvrtc
from kinetree.codegen.loops.language import SINGLE, Data, RowRange
from kinetree.codegen.program import Argument
from kinetree.codegen.render.cuda import ROUTINES, Layout
from kinetree.codegen.runtime import cuda
from kinetree.errors import BackendError, DeviceMemoryError, MissingPackageError
from kinetree.model.define import kernel_of

ATTRIBUTES = {
    "MultiProcessorCount": 10, "MaxSharedMemoryPerBlock": 49152,
    "MaxSharedMemoryPerBlockOptin": 200_000, "MaxSharedMemoryPerMultiprocessor": 228_000,
    "MaxRegistersPerMultiprocessor": 65536, "MaxThreadsPerMultiProcessor": 2048,
}  # fmt: skip

MEMORY = 32 * 2**20  # bytes of the device


class Device:
    """Arguments of the driver and the compiler."""

    def __init__(self):
        self.launches, self.texts, self.attributes = [], [], []
        self.words, self.all_words, self.is_full = [], False, False

    def launchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, places, extra):
        count = 10
        pointers = (ctypes.c_int64 * count).from_address(places)
        words = [ctypes.c_int64.from_address(p).value for p in pointers[:2]]
        self.launches.append((gx, bx, shared, stream, *words))
        if self.all_words:
            self.words.append([ctypes.c_int64.from_address(p).value for p in pointers[:6]])

    def work(self, size):
        if self.is_full:
            raise MemoryError
        self.allocated = size
        return 4096

    def modules(self):
        cupy, backends = ModuleType("cupy"), {}
        cupy.asarray = lambda x: SimpleNamespace(data=SimpleNamespace(ptr=x.ctypes.data), array=x)
        device = SimpleNamespace(compute_capability="90", attributes=ATTRIBUTES)
        cupy.cuda = SimpleNamespace(
            Device=lambda number: device,
            runtime=SimpleNamespace(
                free=lambda x: None, streamIsCapturing=lambda s: True,
                memGetInfo=lambda: (0, MEMORY),
            ),
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
            Stream=None, ExternalStream=nullcontext,
            alloc=lambda size: SimpleNamespace(ptr=self.work(size)),
        )  # fmt: skip
        driver = SimpleNamespace(
            moduleLoadData=lambda code: 1,
            moduleGetFunction=lambda module, name: 2,
            funcGetAttribute=lambda which, function: 100,
            funcSetAttribute=lambda *a: self.attributes.append(a),
            launchKernel=self.launchKernel,
            linkCreate=lambda: 3,
            linkAddData=lambda *a: None,
            linkComplete=lambda state: b"linked",
            linkDestroy=lambda state: None,
        )
        compiler = SimpleNamespace(
            getVersion=lambda: (13, 0),
            createProgram=lambda text, *rest: self.texts.append(text),
            compileProgram=self.compile,
            getCUBIN=lambda program: b"code",
            getProgramLog=lambda program: "line 7: nonsense",
            destroyProgram=lambda program: None,
            NVRTCError=ValueError,
        )
        for name, parts in (
            ("cupy_backends.cuda.api", {"driver": driver}),
            ("cupy_backends.cuda.libs", {"nvrtc": compiler}),
        ):
            backends[name] = ModuleType(name)
            backends[name].__dict__.update(parts)
        return {"cupy": cupy, **backends}

    def compile(self, program, options):
        if "-wrong" in options:
            raise ValueError("compilation")


@pytest.fixture
def device(monkeypatch, tmp_path):
    found = Device()
    for name, module in found.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("KINETREE_CACHE", str(tmp_path))
    caches = (nvrtc.cupy, nvrtc.driver, nvrtc._nvrtc, nvrtc.host, nvrtc.architecture)
    for function in caches:
        function.cache_clear()
    yield found
    for function in caches:
        function.cache_clear()


def kernel():
    return kernel_of(kt.samples.double_pendulum(), "inverse_dynamics")


def test_launches_say_how_many_samples_and_whether_rows_lie_close(device):
    compiled = cuda.CudaKernel(kernel(), "float32", 0)
    for addresses, steps in (([16, 32, 48], [2, 2, 2]), ([16, 36, 48], [2, 2, 2]),
                             ([16, 36, 48], [2, 0, 2]), ([16, 32, 48], [2, 4, 2])):  # fmt: skip
        compiled.launch(addresses, steps, [64], 1000, 7)
        compiled.again(steps, 1000)(addresses, [64], 7)
    (shared,) = compiled.code.shared
    expected = [(16, 64, 2 * shared, 7, 1000, dense) for dense in (1, 0, 1, 0) for _ in range(2)]
    assert device.launches == expected


def test_large_batches_take_large_blocks_and_small_ones_all_processors(device):
    compiled = cuda.CudaKernel(kernel(), "float32", 0)
    for count in (1, 1000, 5_000, 5_000_000):
        compiled.launch([16, 32, 48], [2, 2, 2], [64], count, 0)
    assert [launch[1] for launch in device.launches] == [32, 64, 128, 128]


def test_parts_share_a_workspace_and_take_turns_where_it_is_small(device):
    layout = Layout(bytes=10_000, written=10_000, longest=10, part=100)
    model = kt.samples.chain(6)
    compiled = cuda.CudaKernel(kernel_of(model, "mass_matrix"), "float64", 0, layout)
    assert compiled.code.work > 0
    sample = compiled.code.work * 8
    at_a_time = 2**20 // (32 * sample) * 32  # a thirty-second of the memory
    device.all_words = True
    compiled.launch([0], [6], [16], at_a_time + 5, 3)
    assert device.allocated == at_a_time * sample
    parts = len(compiled.code.functions)
    assert parts > 2
    first, second = device.words[0], device.words[parts]
    assert first[:6] == [at_a_time, 1, 0, 6, 16, 4096]
    assert second[:6] == [5, 1, at_a_time * 6 * 8, 6, 16 + at_a_time * 36 * 8, 4096]
    device.is_full = True
    with pytest.raises(DeviceMemoryError, match=r"workspace of 1 MiB; free memory"):
        compiled.launch([0], [6], [16], at_a_time + 5, 3)


def robot_of(count):
    """A kernel of loops over so many bodies in a chain, whose rows have two numbers."""
    parent = np.arange(count) - 1
    columns = {"parent": parent, "q": np.arange(count), "v": np.arange(count)}
    rows = RowRange(count, columns, KINDS, (parent >= 0).astype(int))
    numbers = {"bodies": {"m": np.ones((count, 1))}, SINGLE: {"g": np.ones((1, 3))}}
    data = Data({"bodies": rows, SINGLE: RowRange(1)}, {"q": count, "v": count}, numbers)
    shapes = ("q", (count,)), ("tau", (count,)), ("H", (count, count))
    q, tau, H = (Argument(*shape) for shape in shapes)
    source = SimpleNamespace(program=lambda kinds: PROGRAM)
    return SimpleNamespace(
        name="walks", key=("walks",), inputs=(q,), outputs=(tau, H), source=source, data=data
    )


def test_loops_are_compiled_once_for_all_robots_and_places_depend_on_the_robot(device):
    kernels = {n: cuda.cuda_kernel(robot_of(n), "float64", 0) for n in (3, 4, 8, 200)}
    assert {n: k.place for n, k in kernels.items()} == {
        3: "shared", 4: "shared", 8: "shared", 200: "memory"
    }  # fmt: skip
    assert len(device.texts) == 2
    again = cuda.cuda_kernel(robot_of(200), "float64", 0)
    assert len(device.texts) == 2
    assert again.code.work == 3 * 200 - 1 + 2 * 200 + 200**2
    assert again.robot[1].array.dtype == "float64"


def test_loops_take_turns_where_the_workspace_is_small(device):
    compiled = cuda.cuda_kernel(robot_of(200), "float64", 0)
    compiled.launch([16], [200], [32, 48], 1000, 5)
    blocks = MEMORY // 32 // (32 * compiled.code.work * 8) or 1
    assert device.launches == [(blocks, 32, compiled.code.shared[0], 5, 1000, 1)]
    assert device.allocated == blocks * 32 * compiled.code.work * 8
    device.launches.clear()
    compiled.again([200], 1000)([16], [32, 48], 5)
    assert len(device.launches) == 1
    device.is_full = True
    with pytest.raises(DeviceMemoryError, match=r"workspace of \d+ MiB; free memory"):
        compiled.launch([16], [200], [32, 48], 1000, 5)


def test_code_is_found_again(device):
    cuda.CudaKernel(kernel(), "float64", 0)
    assert len(device.texts) == 1
    cuda.CudaKernel(kernel_of(kt.samples.double_pendulum(), "inverse_dynamics"), "float64", 0)
    assert len(device.texts) == 1


def test_blocks_fill_the_multiprocessors():
    function = SimpleNamespace(registers=100)
    assert cuda._most_blocks(ATTRIBUTES, function, 4096, 128) == 10 * 4
    assert cuda._most_blocks(ATTRIBUTES, function, 50_000, 128) == 10 * 1


@pytest.mark.parametrize(("count", "blocks", "each"), [(3, 3, 1), (25, 13, 2), (6000, 40, 150)])
def test_blocks_with_routines_have_as_many_samples_each(device, count, blocks, each):
    """Two blocks on each of ten multiprocessors, of 256 samples at most."""
    compiled = cuda.CudaKernel(kernel(), "float32", 0, ROUTINES)
    compiled.launch([16, 32, 48], [2, 2, 2], [64], count, 7)
    ((grid, threads, shared, _, *words),) = device.launches
    assert (grid, threads, words) == (blocks, 256, [count, each])
    assert shared == compiled.code.shared[0]


def test_the_same_launch_again_passes_the_same_arguments(device):
    compiled = cuda.CudaKernel(kernel(), "float32", 0)
    for count, steps in ((1000, [2, 2, 2]), (1000, [2, 0, 2]), (5_000_000, [2, 2, 2])):
        again = compiled.again(steps, count)
        for addresses in ([16, 32, 48], [16, 36, 48]):
            device.launches.clear()
            compiled.launch(addresses, steps, [64], count, 7)
            for _ in range(3):  # the first of a thread, one that makes a pack, one that takes it
                again(addresses, [64], 7)
            assert device.launches == device.launches[:1] * 4


def test_what_the_compiler_says_is_passed_on(device):
    with pytest.raises(BackendError, match=r"NVRTC does not compile .*nonsense"):
        cuda.CudaKernel(kernel(), "float32", 0, options=("-wrong",))


def test_without_cupy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    nvrtc.cupy.cache_clear()
    with pytest.raises(MissingPackageError, match=r"kinetree\[gpu\]"):
        nvrtc.cupy()


def test_text_for_gpus_needs_no_llvmlite():
    code = (
        "import sys; sys.modules['llvmlite'] = None\n"
        "import kinetree as kt; import kinetree.quantities\n"
        "from kinetree.model.define import kernel_of\n"
        "from kinetree.codegen.render.cuda_pieces import render_pieces\n"
        "program = kernel_of(kt.samples.double_pendulum(), 'inverse_dynamics').program\n"
        "print(len(render_pieces(program, 'float32').texts))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_a_warp_whose_arrays_do_not_fit_into_shared_memory_is_named():
    assert sorted(cuda.block_sizes(19_000, 232_448)) == [32, 64, 128, 256]
    assert cuda.block_sizes(60_000, 232_448) == [64, 32]
    with pytest.raises(DeviceMemoryError, match="needs 293 KiB of shared memory") as e:
        cuda.block_sizes(300_000, 232_448)
    assert "take float32, or fewer places for contacts" in str(e.value)
