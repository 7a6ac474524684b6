"""What every text in CUDA C begins with."""

from dataclasses import dataclass
from importlib import resources

__all__ = ["CudaText", "head"]


@dataclass(frozen=True)
class CudaText:
    """CUDA C.

    Attributes:
        text: the whole of it.
        shared: bytes of shared memory for each 32 threads of a block.
        ahead: whether warps load ahead, so that there should be no more of them than fit.
    """

    text: str
    shared: int
    ahead: bool


def head(dtype, shared) -> str:
    """Types, and the functions of ``cuda_tiles.cuh``.

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
