"""One launch on a CUDA device: addresses, steps between samples, a stream."""

from contextlib import contextmanager
from math import prod

from kinetree.errors import DeviceMemoryError, need


class Plans(dict):
    """Launches by the shapes, strides and types that they were prepared for; not too many.

    A small batch on a GPU costs little more than its launch, so preparing it once counts.
    """

    most = 64

    def keep(self, key, plan):
        """Store a launch plan; the others are dropped when there are too many."""
        if len(self) >= self.most:
            self.clear()
        self[key] = plan


def require_cupy():
    """Module ``cupy``, which compiles and launches kernels; an error if it is missing."""
    return need("cupy", "computing with arrays on a GPU", "gpu")


class _Handle:
    """A stream of another library, in the way in which CuPy asks for one."""

    def __init__(self, pointer):
        self._pointer = pointer

    def __cuda_stream__(self):
        return 0, self._pointer  # version of the protocol, and the stream


def external_stream(pointer):
    """Context of another library's CUDA stream as one of CuPy's."""
    cuda = require_cupy().cuda
    if hasattr(cuda.Stream, "from_external"):  # from CuPy 14 on
        return cuda.Stream.from_external(_Handle(pointer))
    return cuda.ExternalStream(pointer)


def launch(kernel, dtype, device, operands, outputs, batch, stream):
    """Launch a kernel for all samples of a batch on the current device, without waiting.

    Args:
        kernel: the kernel.
        dtype: ``"float32"`` or ``"float64"``.
        device: number of the device.
        operands: for each input its address, the numbers from one sample to the next, and the
            array that owns the memory.
        outputs: addresses of the results, contiguous.
        batch: the leading axes.
        stream: address of the stream.

    Returns:
        The compiled kernel; None where there was nothing to compute, or where the next call may
        have to choose another one.
    """
    require_cupy()
    count = prod(batch)
    if count == 0 or not outputs:
        return None
    compiled = kernel.on_device(dtype, device, count)
    addresses, steps = [o[0] for o in operands], [o[1] for o in operands]
    compiled.launch(addresses, steps, outputs, count, stream)
    return kernel.plan_launch(compiled, count)


def step_of(shape, strides, core, batch):
    """Distance from one sample to the next [numbers]; None if it is not constant.

    Args:
        shape: of the array.
        strides: of the array, in numbers, not bytes.
        core: shape of one sample.
        batch: the leading axes to which the array is broadcast.
    """
    n = len(shape) - len(core)
    expected = 1
    for size, stride in zip(reversed(shape[n:]), reversed(strides[n:]), strict=True):
        if size != 1 and stride != expected:
            return None
        expected *= size
    if prod(shape[:n]) == 1:
        return 0
    if tuple(shape[:n]) != tuple(batch[len(batch) - n :]) or prod(batch) != prod(shape[:n]):
        return None
    step, span = None, None
    for size, stride in zip(reversed(shape[:n]), reversed(strides[:n]), strict=True):
        if size == 1:
            continue
        if step is None:
            step, span = stride, stride * size
        elif stride != span:
            return None
        else:
            span = stride * size
    return step


@contextmanager
def memory_errors(kernel, batch, *errors):
    """Context that turns CUDA memory errors into an error about the batch."""
    try:
        yield
    except errors as error:
        raise memory_error(kernel, batch) from error


def memory_error(kernel, batch):
    """Error for a batch whose results do not fit into memory."""
    return DeviceMemoryError(
        f"{kernel.name}: no memory left on the device for the results of a batch of shape "
        f"{tuple(batch)}; split the batch, or use float32"
    )


def out_of_memory(kernel, shape):
    """Error for a result of this shape that does not fit into memory."""
    return memory_error(kernel, shape[: len(shape) - len(kernel.outputs[0].shape)])
