"""Tables of values that others keep alive."""

import gc
import subprocess
import sys

from kinetree.codegen.weak_table import WeakTable


class Value:
    pass


def test_values_are_there_as_long_as_something_refers_to_them():
    table, value = WeakTable(), Value()
    table["a"] = value
    assert table.get("a") is value
    assert table.setdefault("a", Value()) is value
    del value
    gc.collect()
    assert table.get("a") is None
    other = Value()
    assert table.setdefault("a", other) is other
    assert table.get("nothing") is None


def test_keys_of_values_that_are_gone_do_not_add_up():
    table, kept = WeakTable(), [Value() for _ in range(100)]
    for n, value in enumerate(kept):
        table[n] = value
    for n in range(10_000):
        table["gone", n] = Value()
    assert len(table) < 400
    assert all(table.get(n) is value for n, value in enumerate(kept))


def test_no_function_of_python_runs_when_a_value_goes():
    """Where one does, a Ctrl-C that comes while it runs is lost."""
    code = """
import sys
from kinetree.codegen.weak_table import WeakTable
class Value: pass
table, value, calls = WeakTable(), Value(), []
table[1] = value
sys.setprofile(lambda frame, event, argument: calls.append(event) if event == "call" else None)
del value
sys.setprofile(None)
print(calls, table.get(1))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "[] None", found.stderr
