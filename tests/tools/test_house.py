"""``.ci/house.py``: what it counts as a cycle, a string import, and too large."""

import pytest
from support.ci_tools import of_ci


@pytest.fixture(scope="module")
def house():
    return of_ci("house")


def test_cycles_are_found_by_way_of_others(house):
    assert house.cycles({("a", "b"), ("b", "c"), ("a", "c")}) == []
    assert house.cycles({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")}) == [["a", "b", "c"]]
    assert house.cycles({("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")}) == [
        ["a", "b"],
        ["c", "d"],
    ]


def test_string_imports_are_found_except_those_of_a_package_itself(house, tmp_path, monkeypatch):
    source = tmp_path / "src" / "kinetree"
    (source / "viewer").mkdir(parents=True)
    (source / "viewer" / "__init__.py").write_text('import_module(f"kinetree.viewer.{name}")\n')
    (source / "a.py").write_text('import_module("numpy")\nlib.import_module("kinetree.viewer")\n')
    (source / "b.py").write_text('import_module(f"kinetree.{name}")\nimport_module(name)\n')
    monkeypatch.setattr(house, "SOURCE", source)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    assert house.string_imports() == ["src/kinetree/a.py:2", "src/kinetree/b.py:1"]
    assert {name: files for name, (files, _) in house.sizes().items()} == {
        "viewer": 1, "a": 1, "b": 1,
    }  # fmt: skip


def test_sizes_of_functions_and_files_that_are_not_formatted(house, tmp_path, monkeypatch):
    """Parameters but self, lines of the body, and skips that are not at tables of data."""
    many = ", ".join(f"a{k}" for k in range(9))
    (tmp_path / "m.py").write_text(
        f"class C:\n    def f(self, {many}):\n        return 1\n\n\n"
        "def long():\n" + "    x = 1\n" * 61 + "\n"
        "TABLE = [1,2]  # fmt: skip\nARRAY: list = tuple([3,4])  # fmt: skip\n"
        "f(1,2)  # fmt: skip\n"
    )
    monkeypatch.setattr(house, "SOURCE", tmp_path)
    found = house.offenders()
    assert found == {
        "parameters": {"m.py:C.f": 9},
        "lines": {"m.py:long": 61},
        "skips": {"m.py": 1},
    }
    before = {"parameters": {"m.py:C.f": 9}, "lines": {"m.py:long": 60}, "skips": {}}
    assert house.grown(found, before) == [
        "lines of m.py:long: 61, at most 60",
        "skips of m.py: 1, at most 0",
    ]


def test_what_is_known_to_be_too_large_only_shrinks(house, tmp_path, monkeypatch):
    """Lowered where it is smaller, left out where it is gone, and never raised."""
    monkeypatch.setattr(house, "KNOWN", tmp_path / "known.txt")
    before = {"parameters": {"a": 12, "b": 10, "c": 9}, "lines": {}, "skips": {}}
    now = {"parameters": {"a": 11, "b": 13, "new": 9}, "lines": {"d": 70}, "skips": {}}
    house.shrink(now, before)
    assert house.known() == {"parameters": {"a": 11, "b": 10}, "lines": {}, "skips": {}}
