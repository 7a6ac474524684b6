"""``.ci/words.py``: phrases and names that we no longer use are found."""

import pytest
from support.ci_tools import of_ci


@pytest.fixture(scope="module")
def words():
    return of_ci("words")


@pytest.mark.parametrize(
    ("text", "line", "phrase"),
    [
        ("Joints move as told.", 0, "as told"),
        ("Where it fails, an\nerror says\n  so.", 1, "says so"),
        ("MEND it", 0, "MEND"),
        ("it is no XML", 0, "it is no "),
        ("A page of its own.", 0, "of its own"),
    ],
)
def test_a_phrase_is_found_with_its_line_and_what_to_write_instead(words, text, line, phrase):
    ((at, found, better),) = words.findings(text)
    assert (at, found) == (line, phrase.strip())
    assert better in words.WORDS.values()


@pytest.mark.parametrize(
    "text", ["the amendment", "it is no longer", "of its own mass", "@refuses("]
)
def test_similar_words_are_not(words, text):
    assert list(words.findings(text)) == []


def test_comments_docstrings_and_messages_are_read_and_names_are_not(words, tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""A docstring, which is\n\nrefused."""\n'
        "refuse = {'refuse': 1}\n"
        "# A comment that runs on and says\n# so.\n"
        "print(f'a message {refuse} that knows ' f'nothing')\n",
        encoding="utf-8",
    )
    found = sorted(
        (first + line, phrase)
        for first, text in words.passages(path)
        for line, phrase, _ in words.findings(text)
    )
    assert found == [(1, "is refused"), (5, "says so"), (7, "knows nothing")]


def test_docstrings_lead_with_the_noun(words):
    text = 'def f():\n    """What a thing is."""\n\n\nclass A:\n    """Shape of a thing."""\n'
    assert list(words.openings(text)) == [(2, "What a thing is.")]
    assert list(words.openings(text.replace("What a", "The"))) == []
    assert list(words.openings(text.replace("What a", "The same, of a"))) != []


NAMED = """class Report:
    @property
    def held(self):
        return 1

    def kept(self):
        return 2


def _turned(x):
    return x


def speed(x):
    return x
"""


@pytest.fixture
def named(words, tmp_path, monkeypatch):
    """A source of two packages with names that break the rules, and an empty list of known ones."""
    for package in ("one", "two"):
        folder = tmp_path / "src" / "kinetree" / package
        folder.mkdir(parents=True)
        (folder / "a.py").write_text(NAMED if package == "one" else "class Report:\n    pass\n")
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "KNOWN", tmp_path / "known.txt")
    return words


def test_participles_and_classes_of_one_name_are_counted(named, capsys):
    assert named.check_names(listed=False, shrink=False) == 3
    printed = capsys.readouterr().out
    assert "src/kinetree/one/a.py:6: kept: a function is a verb" in printed
    assert "turned" in printed
    assert "held" not in printed
    assert "class Report is in one, two: say which" in printed


def test_what_is_known_may_become_fewer_and_not_more(named, capsys):
    named.KNOWN.write_text(
        "participles one 5\nclass Report one two, why\nclass Gone one two, why\n"
    )
    assert named.check_names(listed=False, shrink=False) == 0
    named.check_names(listed=False, shrink=True)
    kept = [line for line in named.KNOWN.read_text().splitlines() if not line.startswith("#")]
    assert kept == ["participles one 2", "class Report one two, why"]
    named.KNOWN.write_text("participles one 1\nclass Report one two, why\n")
    assert named.check_names(listed=False, shrink=False) == 1
    assert capsys.readouterr().out.count("a function is a verb") == 2


def test_public_names_are_known_with_the_reason_and_a_further_package_is_found(named, capsys):
    known = "public one kept, users call it\nparticiples one 1\nclass Report one, users import it\n"
    named.KNOWN.write_text(known)
    assert named.check_names(listed=True, shrink=False) == 1
    printed = capsys.readouterr().out
    assert "one kept is public: users call it" in printed
    assert "class Report is in one, two: say which" in printed
    named.KNOWN.write_text("public one gone, users called it\nclass Report one two, why\n")
    named.check_names(listed=False, shrink=True)
    assert "gone" not in named.KNOWN.read_text()
