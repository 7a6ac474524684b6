"""Here code is compiled as it is for users; elsewhere faster, to the same bits."""

import ctypes
from functools import partial
from importlib import resources

import pytest


@pytest.fixture(autouse=True, scope="module")
def _compiled_as_for_users():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KINETREE_OPTIMIZATION", raising=False)
        yield


@pytest.fixture(scope="session")
def nvrtc():
    """A function of CUDA C and an architecture: the size of the machine code."""
    folder = resources.files("nvidia.cu13").joinpath("lib")
    name = next(f for f in folder.iterdir() if f.name.startswith("libnvrtc.so"))
    return partial(_machine_code, ctypes.CDLL(str(name)))


def _machine_code(nvrtc, text, architecture):
    """Size of the machine code; the compiler's words when there is none."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = [b"--std=c++17", f"-arch={architecture}".encode()]
    failed = nvrtc.nvrtcCompileProgram(program, 2, (ctypes.c_char_p * 2)(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    words = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, words)
    assert not failed, words.value.decode()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return size.value
