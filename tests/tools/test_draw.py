"""``.ci/draw.py``: functions are drawn with the line that a reader sees."""

import ast
import shutil

import pytest
from support.ci_tools import of_ci

TEXT = '''
class Base:
    def at(self, t):
        """Joint at a time.

        More.
        """


class Joint(Base):
    def at(self, t):
        return self

    def other(self, x):
        return x


class Inner(Joint):
    def at(self, t):
        return t

    def __repr__(self):
        return ""
'''


@pytest.fixture(scope="module")
def draw():
    return of_ci("draw")


def test_methods_have_the_line_of_what_they_override(draw):
    tree = ast.parse(TEXT)
    classes = draw.classes_in([tree])
    found = {name: draw.first_line(f, owner, classes) for name, f, owner in draw.functions(tree)}
    assert found == {
        "Base.at": "Joint at a time.",
        "Joint.at": "Joint at a time.",
        "Joint.other": "(self, x)",
        "Inner.at": "Joint at a time.",
    }


def test_a_seed_draws_the_same_functions_again(draw, capsys, tmp_path, monkeypatch):
    shutil.copytree(draw.ROOT / "src" / "kinetree" / "spatial", tmp_path / "src" / "spatial")
    monkeypatch.setattr(draw, "ROOT", tmp_path)  # all of the source is read in seconds
    for _ in range(2):
        draw.main(["--seed", "7", "--count", "3"])
    first, second = capsys.readouterr().out.split("seed 7: ")[1:]
    assert first == second
    assert first.startswith("3 of ")
