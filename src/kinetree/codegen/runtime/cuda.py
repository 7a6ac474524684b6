"""A kernel on a GPU: addresses in, one launch, nothing waited for.

The number of threads in a block is measured when a large batch comes first, and remembered with
the compiled code. Smaller batches take what keeps most multiprocessors busy.
"""

from array import array
from threading import local

from kinetree.arrays.device import external_stream
from kinetree.codegen.build_cuda import build_cuda, build_cuda_loops
from kinetree.codegen.cache import open_store
from kinetree.codegen.loops.robots import tables
from kinetree.codegen.nvrtc import cupy, driver
from kinetree.codegen.render.cuda import LARGEST_BLOCK
from kinetree.codegen.render.cuda_loops import PLACES, LoopLayout, room
from kinetree.errors import DeviceMemoryError

_BLOCKS = (128, 256, 64, 32)  # threads; what is likely best comes first
_WARP = 32  # threads
_LARGE = 2**20  # samples; a batch of this size shows what is fast
_GAIN = 0.98  # of the time; less is noise
_REPEATS = 3
_OWN = 1024  # bytes of shared memory that a block has besides
_MOST_BLOCKS = 32  # on a multiprocessor
_SHARE = 1 / 32  # of the memory of a device that a workspace may take
_ready = local()


def cuda_kernel(kernel, dtype, device) -> "CudaKernel":
    """Compiled kernel for a CUDA device, made the current one; compiled once."""
    kept = kernel.__dict__.setdefault("on_devices", {})
    found = kept.get((dtype, device))
    if found is None:
        make = LoopCudaKernel if hasattr(kernel, "source") else CudaKernel
        given = getattr(kernel, "on_gpu", None) or ()
        found = kept[dtype, device] = make(kernel, dtype, device, *given)
    return found


class CudaKernel:
    """A function of addresses.

    Attributes:
        code: the compiled functions.
        blocks: possible numbers of threads in a block.
        block: threads in a block for large batches; None until it is known.
    """

    def __init__(self, kernel, dtype, device, layout=None, options=()):
        self.device = device
        self._bytes = 4 if dtype == "float32" else 8
        attributes = cupy().cuda.Device(device).attributes
        self.code = self._build(kernel, dtype, attributes, layout, options)
        self._processors = attributes["MultiProcessorCount"]
        self._threads = self.code.threads
        most = attributes["MaxSharedMemoryPerBlockOptin"]
        self.blocks = block_sizes(max(self.code.shared, default=0), most, self._threads)
        self._parts = []
        code = zip(self.code.functions, self.code.shared, self.code.ahead, strict=True)
        for function, shared, ahead in code:
            largest = self._shared_bytes(shared, max(self.blocks))
            if largest > attributes["MaxSharedMemoryPerBlock"]:
                function.allow_shared(largest)
            most = {
                b: _most_blocks(attributes, function, shared, b) if ahead else 2**31 - 1
                for b in self.blocks
            }
            self._parts.append((function.address, shared, most))
        if self._threads:
            shared = self.code.shared[0] * _WARP // self._threads
            given = self.code.functions[0], shared, self._threads
            self._resident = _most_blocks(attributes, *given)
            whole = attributes["MaxSharedMemoryPerMultiprocessor"]
            self.code.functions[0].prefer_shared(-(-100 * (self.code.shared[0] + _OWN) // whole))
        self._given = [(k, a.size) for k, a in enumerate(kernel.inputs) if a.size]
        self._wanted = [k for k, a in enumerate(kernel.outputs) if a.size]
        self._sizes = [a.size for a in kernel.outputs if a.size]
        self._at_a_time = self._places()
        self._launch_key = f"threads in a block\n{self.code.key}"
        known = open_store().get(self._launch_key)
        self.block = int(known) if known else None
        self._launch = driver().launchKernel

    def _build(self, kernel, dtype, attributes, layout, options):
        """Compile the kernel's text for the device and find its entry points."""
        return build_cuda(kernel, dtype, self.device, layout, options)

    def launch(self, inputs, steps, outputs, count, stream, block=None) -> None:
        """Launch the kernel for ``count`` samples at device addresses, on a CUDA stream.

        Args:
            inputs: device addresses, one for each input.
            steps: for each input the numbers from one sample to the next.
            outputs: device addresses of contiguous arrays.
            count: samples, at least 1.
            stream: address of a CUDA stream.
            block: threads in a block; by default what is known to be fast.
        """
        words, places = [count, 1], 0
        for k, size in self._given:
            place, step = inputs[k], steps[k]
            words += (place, step)
            if step:
                places |= place
                if step != size:
                    words[1] = 0
        for k in self._wanted:
            words.append(outputs[k])
            places |= outputs[k]
        if places & 15:
            words[1] = 0
        if self._threads:
            words[1] = self._samples(count)
        self._start(block or self._block_for(count, words, stream), words, stream)

    def _samples(self, count):
        """Samples of a block, so that all blocks that there is room for have as many."""
        rounds = -(-count // (self._resident * self._threads))
        return -(-count // (self._resident * rounds))

    def _shared_bytes(self, shared, block):
        """Bytes of shared memory of a block."""
        return shared if self._threads else block // _WARP * shared

    def again(self, steps, count):
        """Launcher ``(inputs, outputs, stream)`` for arrays with the same steps and count."""

        def launch(inputs, outputs, stream):
            self.launch(inputs, steps, outputs, count, stream)

        if count >= _LARGE or self.code.work or self._threads:  # where packing does not count
            return launch
        block = self._block_for(count, (), 0)
        blocks = -(-count // block)
        parts = [
            (address, min(blocks, most[block]), block // _WARP * shared)
            for address, shared, most in self._parts
        ]
        given = [(k, size, steps[k]) for k, size in self._given]
        return same_launch(
            launch, self.device, self._launch, parts, block, count, given, self._wanted
        )

    def _start(self, block, words, stream):
        """Launch with ``block`` threads per block, and a workspace if one is needed."""
        if not self.code.work:
            self._start_parts(block, words, stream)
            return
        count, most = words[0], self._at_a_time
        samples = words[1] if self._threads else _WARP
        places = -(-min(count, most) // samples) * -(-samples // _WARP)
        room = places * _WARP * self.code.work * self._bytes
        with external_stream(stream):  # what is freed is used again in its order
            work = self._allocate(room)
        for first in range(0, count, most):
            some = [min(count - first, most), *self._shift(words[1:], first), work.ptr]
            self._start_parts(block, some, stream)

    def _allocate(self, room):
        """GPU array of ``room`` bytes as a workspace."""
        try:
            return cupy().cuda.alloc(room)
        except MemoryError as error:
            raise DeviceMemoryError(
                f"no memory left on the device for a workspace of {room / 2**20:.0f} MiB; free "
                f"memory that other arrays and libraries hold, or use float32"
            ) from error

    def _places(self):
        """Number of samples that have a place in the workspace at a time; 0 without workspace."""
        if not self.code.work:
            return 0
        _, total = cupy().cuda.runtime.memGetInfo()
        warps = int(_SHARE * total) // (_WARP * self.code.work * self._bytes)
        return max(1, warps) * _WARP

    def _shift(self, words, first):
        """Launch arguments for samples from number ``first`` on."""
        found, n = [words[0]], 1 + 2 * len(self._given)
        for place, step in zip(words[1:n:2], words[2:n:2], strict=True):
            found += (place + first * step * self._bytes, step)
        outputs = zip(words[n:], self._sizes, strict=True)
        return found + [place + first * size * self._bytes for place, size in outputs]

    def _start_parts(self, block, words, stream):
        """Launch all kernels of the program with ``block`` threads per block.

        Args:
            block: threads.
            words: what the function is called with (``render.cuda``).
            stream: address of a CUDA stream.
        """
        needed = -(-words[0] // (words[1] if self._threads else block))
        for address, shared, most in self._parts:
            self._launch_function(address, min(needed, most[block]), block, shared, words, stream)

    def _launch_function(self, address, grid, block, shared, words, stream):
        """Launch one CUDA function on a stream, with words as its arguments."""
        if self.device not in _ready.__dict__:
            cupy().cuda.runtime.free(0)  # a thread that is new here has no context yet
            _ready.__dict__[self.device] = True
        words = array("q", words)
        first, n = words.buffer_info()
        places = array("q", range(first, first + 8 * n, 8))
        size = self._shared_bytes(shared, block)
        self._launch(address, grid, 1, 1, block, 1, 1, size, stream, places.buffer_info()[0], 0)

    def _block_for(self, count, words, stream):
        """Threads per block for a number of samples; measured at the first large batch."""
        if self._threads:
            return self._threads
        if count >= _LARGE:
            if self.block is None and not _capturing(stream):
                self.block = self._quickest_block(words, stream)
                open_store().put(self._launch_key, str(self.block).encode())
            return self.block or self.blocks[0]
        for block in self.blocks:  # of a small batch every processor gets its share
            if count >= block * self._processors:
                return block
        return min(self.blocks)

    def _quickest_block(self, words, stream):
        """Threads per block that run fastest for these arguments, measured on the device."""
        cuda, times = cupy().cuda, {}
        for block in self.blocks:
            self._start(block, words, stream)
            with external_stream(stream):
                before, after = cuda.Event(), cuda.Event()
                before.record()
                for _ in range(_REPEATS):
                    self._start(block, words, stream)
                after.record()
                after.synchronize()
            times[block] = cuda.get_elapsed_time(before, after)
        best = min(times, key=lambda block: times[block])
        usual = self.blocks[0]
        return best if times[best] < _GAIN * times[usual] else usual


# --- Code for every robot: the robot's tables are data on the device -----------------------------

_WARPS = {"shared": 4, "arguments": 12}  # on a multiprocessor, for which a place is worth while


class LoopCudaKernel(CudaKernel):
    """A kernel on a GPU by loops over tables (``render.cuda_loops``).

    Attributes:
        place: what is in shared memory, one of ``render.cuda_loops.PLACES``.
        robot: integers and numbers of the robot, on the device.
    """

    place: str
    robot: tuple

    def _build(self, kernel, dtype, attributes, layout, options):
        """Compile the loop program with the best layout of shared memory, and load the robot."""
        layout = layout or LoopLayout()
        sizes = sum(a.size for a in (*kernel.inputs, *kernel.outputs))

        def decide(loops):
            """Place, bytes of shared memory of a warp, and numbers of a sample elsewhere."""
            self.robot = tables(loops, kernel.data)
            rows = int(self.robot[0][loops.header["rows of a sample"]])
            for place in (layout.place,) if layout.place else PLACES:
                shared, work = room(place, rows, sizes, dtype)
                warps = attributes["MaxSharedMemoryPerMultiprocessor"] // (shared + _OWN)
                fits = shared + _OWN <= attributes["MaxSharedMemoryPerBlockOptin"]
                if layout.place or (fits and warps >= _WARPS.get(place, 0)):
                    break
            self.place = place
            return place, shared, work

        code = build_cuda_loops(kernel, dtype, self.device, decide, layout.resident, options)
        put = cupy().asarray
        self.robot = put(self.robot[0]), put(self.robot[1].astype(dtype))
        cupy().cuda.get_current_stream().synchronize()  # launches may be on any other stream
        return code

    def again(self, steps, count):
        """Launcher ``(inputs, outputs, stream)`` for arrays with the same steps and count."""
        return lambda inputs, outputs, stream: self.launch(inputs, steps, outputs, count, stream)

    def _start(self, block, words, stream):
        """Launch as many blocks as are resident; each takes several sets of samples."""
        address, shared, most = self._parts[0]
        blocks, words, work = most[block], list(words), None
        if self.code.work:
            block = max((b for b in self.blocks if b <= min(block, self._at_a_time)), default=_WARP)
            blocks = min(most[block], self._at_a_time // block)
        blocks = min(blocks, -(-words[0] // block))
        if self.code.work:
            with external_stream(stream):  # what is freed is used again in its order
                work = self._allocate(blocks * block * self.code.work * self._bytes)
        words += [work.ptr if work else 0, *(table.data.ptr for table in self.robot)]
        self._launch_function(address, blocks, block, shared, words, stream)


def block_sizes(shared: int, most: int, threads: int = 0) -> list[int]:
    """Threads that a block may have; its warps need ``shared`` bytes each, of ``most``.

    Where it has so many ``threads``, these are the bytes that all of them need.
    """
    found = [b for b in _BLOCKS if b <= LARGEST_BLOCK and b // _WARP * shared <= most]
    if threads:
        found = [threads] if shared <= most else []
    if not found:
        raise DeviceMemoryError(
            f"a sample needs {shared / 1024:.0f} KiB of shared memory, of which a block of this "
            f"device has {most / 1024:.0f}; take float32, or fewer places for contacts, "
            f"TimeStepping(slots=...)"
        )
    return found


def _most_blocks(attributes, function, shared, block):
    """Number of blocks that all multiprocessors can have resident at a time."""
    warps = block // _WARP
    registers = _WARP * (-(-function.registers // 8) * 8) * warps
    room = min(
        attributes["MaxRegistersPerMultiprocessor"] // registers,
        attributes["MaxThreadsPerMultiProcessor"] // block,
        attributes["MaxSharedMemoryPerMultiprocessor"] // (warps * shared + _OWN),
        _MOST_BLOCKS,
    )
    return max(1, room) * attributes["MultiProcessorCount"]


def _capturing(stream):
    """Whether a CUDA stream is being captured, so that no timing can be done."""
    return cupy().cuda.runtime.streamIsCapturing(stream)


# --- The same launch again and again: what follows from steps and count is kept ------------------
# For small batches, packing arguments takes longer than the launch itself.

_seen = local()


def same_launch(first, device, start, parts, block, count, given, wanted):
    """Fast launcher that repeats one launch for new input and output addresses and a stream.

    Args:
        first: the same function, as a new thread needs it.
        device: number of the device.
        start: ``launchKernel`` of the driver.
        parts: for each function its address, blocks of a grid, and bytes of shared memory.
        block: threads in a block.
        count: samples.
        given: for each input with numbers its place, its size, and its step between samples.
        wanted: places of the outputs with numbers.
    """
    blank, ins, outs, shared_ins = [count, 0], [], [], []
    for k, _, step in given:
        (ins if step else shared_ins).append((len(blank), k))
        blank += (0, step)
    for k in wanted:
        outs.append((len(blank), k))
        blank.append(0)
    close = all(step in (0, size) for _, size, step in given)
    packs = []

    def launch(inputs, outputs, stream):
        if device not in _seen.__dict__:
            first(inputs, outputs, stream)
            _seen.__dict__[device] = True
            return
        try:
            pack = packs.pop()
        except IndexError:  # all are in use by other threads
            pack = _Pack(blank)
        words, together = pack.words, 0
        for at, k in ins:
            words[at] = place = inputs[k]
            together |= place
        for at, k in shared_ins:
            words[at] = inputs[k]
        for at, k in outs:
            words[at] = place = outputs[k]
            together |= place
        words[1] = close and not together & 15
        for address, grid, shared in parts:
            start(address, grid, 1, 1, block, 1, 1, shared, stream, pack.address, 0)
        packs.append(pack)

    return launch


class _Pack:
    """The words of a launch, and where each of them is."""

    __slots__ = ("address", "places", "words")

    def __init__(self, blank):
        self.words = array("q", blank)
        first, n = self.words.buffer_info()
        self.places = array("q", range(first, first + 8 * n, 8))
        self.address = self.places.buffer_info()[0]
