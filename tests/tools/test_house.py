"""``.ci/house.py``: what it counts as a cycle and as a string import."""

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
