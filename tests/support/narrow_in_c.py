"""Narrow phases as the text for a GPU has them, by the C compiler of this machine."""

import ctypes

import numpy as np

from kinetree.codegen.procedures.language import FLOAT, ArrayType
from kinetree.codegen.render.cuda_procedures import LANES, procedures_text
from support.backends import c_library

_HEAD = """\
#include <math.h>
#include <stdlib.h>
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __syncwarp()
#define __shfl_xor_sync(all, x, k) (x)
#define DEVICE static inline
typedef {real} real;
typedef long long word;
static inline void lanes_together(void) {{}}
static struct {{ int x; }} threadIdx;
"""
_CALL = """
int found(void *shapes, double margin, void *touch)
{{ return {name}(shapes, 0, 1, (real)margin, touch, 0); }}
"""


def narrow_in_c(narrow, folder, dtype="float32"):
    """A narrow phase in single precision, or in double; arguments as those of Python.

    It returns how many points there are, and writes them where the double ones would be.
    """
    real = {"float32": "float", "float64": "double"}[dtype]
    text = procedures_text([narrow], dtype)
    text = text.replace(f"#define LANES {LANES[dtype]}", "#define LANES 1")
    text = _HEAD.format(real=real) + text + _CALL.format(name=narrow.name)
    flags = ["-std=gnu11", "-O0", "-ffp-contract=off", "-w"]
    call = c_library(folder / f"{narrow.name}_{dtype}.so", text, flags).found
    call.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p]

    def run(shapes, i, j, margin, touch, n):
        assert (i, j, n) == (0, 1, 0)
        (one, _, keep_one), (two, arrays, keep_two) = (_packed(r, dtype) for r in (shapes, touch))
        count = call(one, margin, two)
        assert keep_one
        assert keep_two
        for name, values in arrays.items():
            getattr(touch, name)[:] = values
        return count

    return run


def _packed(record, dtype):
    """Address of a record with numbers of another precision, its arrays, and what it consists of.

    Every field has a word.
    """
    words = np.zeros(ctypes.sizeof(type(record)) // 8, np.int64)
    arrays = {}
    for name, kind in record.types.items():
        value, word = getattr(record, name), words[type(record).offsets[name] // 8 :][:1]
        if isinstance(kind, ArrayType):
            arrays[name] = np.ascontiguousarray(value, dtype if kind.element == FLOAT else "int32")
            word[0] = arrays[name].ctypes.data
        else:
            word.view(dtype if kind == FLOAT else "int32")[0] = value
    return words.ctypes.data, arrays, (words, arrays)
