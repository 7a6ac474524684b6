""".ci/unreached.py: definitions that nothing in the source reaches."""

import pytest
from support.ci_tools import of_ci

SOURCE = '''"""A module that mentions idle."""

from elsewhere import idle


class Kept:
    """A class."""

    field: int
    lost: int = 0

    def used(self):
        """Call reached, never idle."""
        return reached(self.field)  # and idle

    def unused(self):
        """Nobody calls it."""


def reached(x):
    return {"named": x}


def named():
    """Found by its name in a string."""


def idle():
    return Kept().used()


@registered
def plugged():
    """Its decorator keeps it."""
'''


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Names of a package of one module, and how many there are in the known list."""
    tool = of_ci("unreached")
    source = tmp_path / "src" / "kinetree"
    source.mkdir(parents=True)
    (source / "__init__.pyi").write_text("from kinetree import part\n")
    (source / "part.py").write_text(SOURCE)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "SOURCE", source)
    monkeypatch.setattr(tool, "KNOWN", tmp_path / "known.txt")
    return tool


def test_a_file_that_nothing_imports_is_found(found, capsys):
    (found.SOURCE / "alone.py").write_text("from kinetree import alone\n")
    (found.SOURCE / "textbook").mkdir()
    (found.SOURCE / "textbook" / "text.py").write_text("")
    assert [d.name for d in found.unimported()] == ["alone"]
    assert found.main() == 1
    assert "alone.py:1: file alone: nothing in the source reaches it" in capsys.readouterr().out
    (found.SOURCE / "other.py").write_text("import kinetree.alone\n")
    assert [d.name for d in found.unimported()] == ["other"]


def test_what_nothing_reaches_is_found(found, capsys):
    assert [d.name for d in found.unreached()] == ["Kept.lost", "Kept.unused", "idle"]
    assert found.main() == 1
    assert "part.py:16: function Kept.unused" in capsys.readouterr().out


def test_what_is_known_stays_and_must_be_there(found, capsys):
    lines = ["part.py:Kept.lost  a", "part.py:Kept.unused  b", "part.py:idle  c"]
    found.KNOWN.write_text("# reasons\n" + "\n".join(lines))
    assert found.main() == 0
    found.KNOWN.write_text("\n".join([*lines, "part.py:reached  d"]))
    assert found.main() == 1
    assert "part.py:reached is reached, or no longer there" in capsys.readouterr().out


def test_pages_and_public_lists_reach(found):
    (found.ROOT / "README.md").write_text("call `idle`")
    (found.SOURCE / "__init__.pyi").write_text("from kinetree.part import Kept as Kept")
    assert found.unreached() == []


def test_options_that_no_call_gives(found):
    text = "def f(a, b=1, *, c=2):\n    return a\n\n\ndef g():\n    return f(1, 2)\n"
    (found.SOURCE / "part.py").write_text(text)
    assert [d.name for d in found.options()] == ["f(c=)"]
