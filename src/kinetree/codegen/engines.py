"""Machine code that is loaded, and LLVM's engines, which run it."""

from itertools import count
from weakref import ref


class MachineCode:
    """A loaded module; keeps it alive, and what it calls.

    Attributes:
        level: how much LLVM optimised it.
        name: of the program.
        is_bound: whether it calls code that is tied to one robot.
    """

    is_bound = False

    def __init__(self, engine, level=1):
        self._number, self._kept, self.level, self.name = _engines.keep(self, engine), [], level, ""

    def keeps(self, other):
        """Keep other code alive as long as this, which calls it."""
        if other is not self and other is not None:
            self._kept.append(other)

    def address(self, name):
        """Address of a function in the machine code, by name."""
        return _engines[self._number].get_function_address(name)

    def global_address(self, name):
        """Address of a global variable in the machine code, by name."""
        return _engines[self._number].get_global_value_address(name)


class _Engines:
    """Engines of LLVM by number, which are freed, some at a time, when others are made.

    llvmlite frees them in a function of Python. Where garbage is collected, which may take a
    second, a Ctrl-C that came meanwhile would be lost in it. So no garbage refers to them.
    """

    # The background makes engines, too, and may do so between any two lines here. A lock would be
    # held for ever in a process that is forked meanwhile; single steps of dictionaries need none.

    SOME = 16

    def __init__(self):
        self._engines, self._codes, self._numbers, self._most = {}, {}, count(1), self.SOME

    def __getitem__(self, number):
        return self._engines[number]

    def keep(self, code, engine) -> int:
        """Keep an engine as long as the machine code that runs it; its number."""
        number = next(self._numbers)
        self._engines[number] = engine
        self._codes[number] = ref(code)
        if len(self._engines) > self._most:
            for old in [n for n, of in list(self._codes.items()) if of() is None]:
                self._codes.pop(old, None)
                self._engines.pop(old, None)
            self._most = len(self._engines) + self.SOME
        return number


_engines = _Engines()
