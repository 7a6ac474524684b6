"""Tables and groups of values that others keep alive."""

import ast
import gc
import subprocess
import sys
from pathlib import Path

import kinetree
from kinetree.codegen.weak_table import WeakGroup, WeakTable


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


def test_groups_have_what_something_refers_to():
    group, values = WeakGroup(), [Value() for _ in range(100)]
    for value in (*values, *values):
        group.add(value)
    group.discard(values[7])
    group.discard(Value())
    assert list(group) == values[:7] + values[8:]
    for _ in range(10_000):
        group.add(Value())
    assert list(group) == values[:7] + values[8:]
    del value, values[10:]
    gc.collect()
    assert list(group) == values[:7] + values[8:]


def test_nothing_in_the_source_has_functions_that_run_when_a_value_goes():
    """Collections of ``weakref``, callbacks and ``__del__`` lose what a signal handler raises."""
    found = []
    for path in sorted(Path(kinetree.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(word in text for word in ("weakref", "__del__", "ref(")):
            continue  # most files are not parsed
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "weakref":
                found += [(path.name, alias.name) for alias in node.names if alias.name != "ref"]
            elif isinstance(node, ast.Import):
                found += [(path.name, a.name) for a in node.names if a.name == "weakref"]
            elif isinstance(node, ast.FunctionDef) and node.name == "__del__":
                found.append((path.name, node.name))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ref":
                found += [(path.name, "callback")] * (len(node.args) + len(node.keywords) > 1)
    assert found == []
