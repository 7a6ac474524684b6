"""The glossary of docs/notation.md: one name for one thing — RBDA, list of symbols."""

import inspect
import re
from collections import defaultdict
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

import kinetree as kt
from kinetree import model as model_package
from kinetree.joints import AbstractJoint

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
SPACES = ("", "contact", "control", "edit", "equivalence", "floating", "gears", "identification",
          "ik", "loops", "model", "symbolic")  # fmt: skip
OVERLOADED = list("λTukδαNKF")  # more than once in the list of symbols
UNNAMED = ("spelled out", "not used")


def rows():
    """The table of letters with several meanings: letter, meanings, names."""
    part = PAGE.partition("## One letter, several meanings")[2].partition("\n## ")[0]
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] != "letter":
            yield cells[0], cells[1].split("; "), cells[2].split("; ")


def test_every_overloaded_letter_is_in_the_glossary_once():
    letters = [letter for letter, *_ in rows()]
    assert len(letters) == len(set(letters))
    assert set(OVERLOADED) <= set(letters)


def test_every_meaning_has_a_name_of_its_own():
    """Within a letter, and across letters: a name stands for one meaning wherever it is used."""
    meaning_of: dict = {}
    for letter, meanings, names in rows():
        assert len(meanings) == len(names) >= 2, letter
        named = [n for n in names if n not in UNNAMED]
        assert len(set(named)) == len(named), letter
        for meaning, name in zip(meanings, names, strict=True):
            for code in re.findall(r"`([\w.]+)`", name):
                if code not in (letter, letter.lower()):  # inside a text
                    assert meaning_of.setdefault(code, meaning) == meaning, (code, letter)


def exists(name):
    """Whether a name of the glossary is one of the library: public, of a class, or in a text."""
    head, _, rest = name.partition(".")
    if head == "model":
        made = kt.samples.four_bar()
        return hasattr(made, rest)
    if head == "joint":
        return hasattr(AbstractJoint, rest)
    if rest:
        for space in (kt, kt.loops, kt.control, kt.floating, kt.model, model_package.dh):
            owner = getattr(space, head, None)
            if owner is not None:
                known = [f.name for f in fields(owner)] if is_dataclass(owner) else []
                return rest in known or hasattr(owner, rest)
        return False
    if any(hasattr(getattr(kt, space) if space else kt, name) for space in SPACES):
        return True
    return name in words_of_texts()


@cache
def words_of_texts():
    """Every word in the source of algorithms, loops and models."""
    folders = [ROOT / "src" / "kinetree" / name for name in ("algorithms", "loops", "model")]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    return {word for path in files for word in re.findall(r"\w+", path.read_text("utf-8"))}


@pytest.mark.parametrize("letter", [row[0] for row in rows()])
def test_names_of_the_glossary_are_those_of_the_library(letter):
    names = next(names for a, _, names in rows() if a == letter)
    for name in re.findall(r"`([\w.]+)`", " ".join(names)):
        assert exists(name), f"{letter}: the library has no {name!r}"


def public_functions():
    for space in SPACES:
        module = getattr(kt, space) if space else kt
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield f"{space}.{name}".lstrip("."), getattr(module, name)


def test_names_of_the_interface_are_unique():
    """X-01: no name twice, no thing under two names, none that differ by spelling alone."""
    for space in SPACES:
        module = getattr(kt, space) if space else kt
        assert len(module.__all__) == len(set(module.__all__)), space
        things, spelled = defaultdict(list), defaultdict(list)
        for name in module.__all__:
            thing = getattr(module, name)
            things[id(thing)].append(name)
            is_class = inspect.isclass(thing)
            spelled[is_class, name.lower().replace("_", "")].append(name)
        for names in (*things.values(), *spelled.values()):
            assert len(names) == 1, f"{space}: {names}"


def test_overloaded_letters_are_no_arguments():
    """But for ``K qdd = k``, the constraints, where the glossary says so."""
    letters = {*"TuNFGHCJXpn", "lam", "delta", "alpha", "mu", "nu", "kappa"}
    for name, function in public_functions():
        given = set(inspect.signature(function).parameters)
        assert not given & letters, f"{name}: {given & letters}"
        if "K" in given:
            assert name.startswith("loops."), name
