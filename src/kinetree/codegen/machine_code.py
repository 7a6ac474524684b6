"""IR text to machine code, with LLVM for the CPU of this machine.

Compiling gives object code, which is bytes and can be kept; loading puts it into executable memory
and resolves what it refers to. llvmlite is imported when first needed.
"""

import os
from contextlib import contextmanager
from functools import cache
from threading import Lock


class MachineCode:
    """A loaded module; keeps it alive.

    Attributes:
        level: how much LLVM optimised it.
    """

    def __init__(self, engine, level=1):
        self._engine, self._kept, self.level = engine, None, level

    def keeps(self, other):
        """Let other code live as long as this, which calls it."""
        if other is not self and other is not None:
            self._kept = other

    def address(self, name):
        """Address of a function."""
        return self._engine.get_function_address(name)

    def global_address(self, name):
        """Address of a global variable."""
        return self._engine.get_global_value_address(name)


@cache
def _binding():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _features():
    return _binding().get_host_cpu_features()


def optimization(wanted=1) -> int:
    """How much LLVM optimises where ``wanted`` is asked for, 0 or 1.

    Code of level 0 compiles in a quarter of the time, runs slower and computes the same bits:
    operations and their order are those of the text at both levels. The environment variable
    KINETREE_OPTIMIZATION, 0 or 1, is the level of everything.
    """
    text = os.environ.get("KINETREE_OPTIMIZATION", "").strip()
    return int(text) if text in ("0", "1") else wanted


def host(level=None) -> str:
    """Everything about compiler and processor that machine code of a level depends on."""
    level = optimization() if level is None else level
    return _host() if level else f"{_host()}, level 0"


@cache
def _host():
    import llvmlite

    llvm = _binding()
    version = ".".join(map(str, llvm.llvm_version_info))
    return (
        f"llvmlite {llvmlite.__version__}, LLVM {version}, {llvm.get_default_triple()}, "
        f"{llvm.get_host_cpu_name()}, {_features().flatten()}"
    )


def _target_machine(level=0):
    llvm = _binding()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        opt=level,
        cpu=llvm.get_host_cpu_name(),
        features=_features().flatten(),
        jit=True,
    )


def object_code(ir, level=None) -> bytes:
    """Object code of a module given as text."""
    llvm = _binding()
    with _compiling:
        machine = _target_machine(optimization() if level is None else level)
        module = llvm.parse_assembly(ir)
        # The text is optimised already; passes over it take time and gain nothing.
        with _fewer_passes(llvm):
            return machine.emit_object(module)


@contextmanager
def _fewer_passes(llvm):
    """Without passes that take long and gain nothing here, for as long as it takes.

    On Arm these are half of the time to compile; reordering before registers are assigned even
    spills more of them than our order does: see benchmarks/results.md. The options are those of
    the whole process, so they go back at once.
    """
    if not llvm.get_default_triple().startswith(("aarch64", "arm64")):
        yield
        return
    _set_options(llvm, wanted=True)
    try:
        yield
    finally:
        _set_options(llvm, wanted=False)


def _set_options(llvm, wanted):
    for name, ours in _OPTIONS.items():
        llvm.set_option("kinetree", f"-{name}={str(ours == wanted).lower()}")


_OPTIONS = {
    "enable-misched": False,  # instructions stay in our order,
    "enable-post-misched": False,  # also once registers are assigned
    "disable-cgp": True,  # of use across basic blocks, and ours is one
    "disable-lsr": True,  # of use in short loops
    "aarch64-use-aa": False,  # what may overlap: the code comes out the same to the last bit
}
_compiling = Lock()  # LLVM's own lock lets one thread compile at a time, too
if hasattr(os, "register_at_fork"):  # who compiles would not be there to finish
    os.register_at_fork(
        before=_compiling.acquire,
        after_in_parent=_compiling.release,
        after_in_child=_compiling.release,
    )


def load(data, level=1) -> MachineCode:
    """Machine code ready to run, from object code that this process or a trusted one compiled."""
    llvm = _binding()
    with _compiling:
        # An engine owns its target machine, so that each needs its own; and it would compile the
        # empty module, for longer than all else takes.
        module = llvm.parse_assembly("")
        engine = llvm.create_mcjit_compiler(module, _target_machine())
        engine.remove_module(module)
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
    return MachineCode(engine, level)


def is_provided(symbol) -> bool:
    """Whether code that is loaded from now on may call this symbol."""
    return symbol in _provided


def provide(symbol, data) -> None:
    """Let ``symbol`` stand for the function ``shared`` of object code, for the whole process."""
    code = load(data)
    _kept.append(code)
    _binding().add_symbol(symbol, code.address("shared"))
    _provided.add(symbol)


_provided, _kept = set(), []


@cache
def default_lanes(dtype, small=False):
    """Samples per vector of batch code: as many as one register of this CPU holds.

    Small programs take two registers' worth: there is room for them, and more independent work
    keeps the processor busy. For large ones that compiles twice as long and is no faster: see
    benchmarks/results.md.
    """
    features = _features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    registers = 2 if small and bits < 512 else 1
    return registers * bits // {"float64": 64, "float32": 32}[dtype]
