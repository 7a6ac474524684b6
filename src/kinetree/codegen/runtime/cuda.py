"""A kernel on a GPU: addresses in, one launch, nothing waited for.

The number of threads in a block is measured when a large batch comes first, and remembered with
the compiled code. Smaller batches take what keeps most multiprocessors busy.
"""

from kinetree.codegen.build_cuda import build_cuda
from kinetree.codegen.cache import open_store
from kinetree.codegen.compile.nvrtc import cupy

__all__ = ["CudaKernel", "cuda_kernel"]

_BLOCKS = (128, 64, 256, 32)  # threads; what is likely best comes first
_LARGE = 2**17  # samples; a batch of this size shows what is fast
_REPEATS = 3


def cuda_kernel(kernel, dtype, device) -> "CudaKernel":
    """The kernel compiled for a device, which is current; kept with the kernel."""
    kept = kernel.__dict__.setdefault("on_devices", {})
    found = kept.get((dtype, device))
    if found is None:
        found = kept[dtype, device] = CudaKernel(kernel, dtype, device)
    return found


class CudaKernel:
    """A function of addresses.

    Attributes:
        code: the compiled function.
        block: threads in a block for large batches; None until it is known.
    """

    def __init__(self, kernel, dtype, device, layout=None, options=()):
        self.code = build_cuda(kernel, dtype, device, layout, options)
        attributes = cupy().cuda.Device(device).attributes
        self._processors = attributes["MultiProcessorCount"]
        most = attributes["MaxSharedMemoryPerBlockOptin"]
        self._blocks = [b for b in _BLOCKS if b * self.code.shared <= most]
        largest = max(self._blocks) * self.code.shared
        if largest > attributes["MaxSharedMemoryPerBlock"]:
            self.code.function.max_dynamic_shared_size_bytes = largest
        self._launch_key = f"threads in a block\n{self.code.key}"
        known = open_store().get(self._launch_key)
        self.block = int(known) if known else None

    def launch(self, inputs, steps, outputs, count, stream) -> None:
        """Compute ``count`` samples.

        Args:
            inputs: device addresses, one for each input.
            steps: for each input the numbers from one sample to the next.
            outputs: device addresses of contiguous arrays.
            count: samples, at least 1.
            stream: address of a CUDA stream.
        """
        arguments = [count]
        for address, step in zip(inputs, steps, strict=True):
            arguments += (address, step)
        arguments += outputs
        self._start(self._block_for(count, arguments, stream), count, tuple(arguments), stream)

    def _start(self, block, count, arguments, stream):
        cuda = cupy().cuda
        grid = -(-count // block)
        if stream == cuda.get_current_stream().ptr:
            self.code.function((grid,), (block,), arguments, shared_mem=block * self.code.shared)
            return
        with cuda.ExternalStream(stream):
            self.code.function((grid,), (block,), arguments, shared_mem=block * self.code.shared)

    def _block_for(self, count, arguments, stream):
        """Threads in a block; measured when the first large batch comes."""
        if count >= _LARGE:
            if self.block is None and not _capturing(stream):
                self.block = self._measured(count, tuple(arguments), stream)
                open_store().put(self._launch_key, str(self.block).encode())
            return self.block or self._blocks[0]
        for block in self._blocks:  # of a small batch every processor gets its share
            if count >= block * self._processors:
                return block
        return min(self._blocks)

    def _measured(self, count, arguments, stream):
        cuda, times = cupy().cuda, {}
        for block in self._blocks:
            self._start(block, count, arguments, stream)
            with cuda.ExternalStream(stream):
                before, after = cuda.Event(), cuda.Event()
                before.record()
                for _ in range(_REPEATS):
                    self._start(block, count, arguments, stream)
                after.record()
                after.synchronize()
            times[block] = cuda.get_elapsed_time(before, after)
        return min(times, key=lambda block: times[block])


def _capturing(stream):
    """Whether launches are being recorded for later; then nothing can be measured."""
    runtime = cupy().cuda.runtime
    return runtime.streamIsCapturing(stream) if hasattr(runtime, "streamIsCapturing") else False
