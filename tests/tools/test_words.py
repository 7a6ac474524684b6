"""``.ci/words.py``: phrases that we no longer use are found in what people read, not in names."""

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
