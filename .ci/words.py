"""Phrases that we no longer use, with what to write instead.

    python .ci/words.py             lists where they are; exits with 1 when there are any

Looked through are pages, README, scripts and the source: docstrings, messages and comments. Names
in code are not. A line break within a phrase does not hide it. Docstrings of the source must not
begin with one of ``OPENINGS``: they lead with the noun, or with a verb.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks", "docs", "examples")
PLACES += ("src/kinetree",)
GENERATED = ("book.md",)  # names of tests

WORDS = {
    r"says? so": "name what happens: raises an error, warns, is documented",
    r"without more ado": "leave it out",
    r"(its|their) business": "handles, supports",
    r"knows? nothing": "ignores, does not depend on",
    r"no way (back|on|through)": "is not supported",
    r"(?<!\.)mend(s|ed|ing)?": "fix, repair",
    r"(as|is|are|was|were) told": "prescribed, given, set",
    r"it is no (?!longer|more|less|better|worse)": "it is not a",
    r"now and then": "sometimes, at random times, every n steps",
    r"of (its|their) own(?=[.,;:)\"\']|$| (and|or|in|for|that|which|with|when|to|at|on|by|as)\b)": (
        "its own, separate, individual"
    ),
    r"(is|are|was|were|be) refused": "raises an error, is not supported",
    r"(?<!@)refus(es?|ing)(?!\()": "raises an error, does not support",
    r"on the host": "on the CPU, in Python",
    r"at (its|their) word": "literally, exactly",
    r"in the place of": "instead of",
    r"as it stands": "unchanged, directly",
    r"to and fro": "back and forth, in both directions",
    r"asked (of|for)": "requested",
    r"in vain": "without success",
    r"wears?": "has",
    r"blows": "impacts",
    r"whole numbers?": "integer",
    r"of ours": "of kinetree, of the model; our own",
    r"(at most|up to|after|every|for) so many(?! \w+ that)": "n, a number of, a limited number of",
    r"(say|says) nothing new": "is redundant",
    r"answers? to (a )?forces?": "responds to",
    r"(go|goes) in step": "runs in lockstep",
    r"in one go": "in a single run",
    r"held against": "compared with",
    r"parts of (its|their|the|a) size": "fraction of",
    r"what is (asked|wanted|watched)": "name it: inputs, requested, measured",
    r"what waits": "name it: pending work, queued calls",
    r"for want of": "without",
}
OPENINGS = ("That ", "The same ", "Those ", "What ", "Which ", "Of ")
_PATTERNS = {
    re.compile(rf"\b({phrase})\b".replace(" ", r"\s+"), re.IGNORECASE): better
    for phrase, better in WORDS.items()
}
_ANY = re.compile("|".join(p.pattern for p in _PATTERNS), re.IGNORECASE)
# Across literals, and of text in small letters: alternatives that begin with another letter are
# passed over at once then, which takes a seventh of the time.
_PERHAPS = re.compile(rf"\b(?:{'|'.join(WORDS)})\b".replace(" ", r"[\s#\"'f\\]+"))


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """How many lines are before a phrase, the phrase, and what to write instead."""
    for found in _ANY.finditer(text):
        phrase = " ".join(found.group().split())
        better = next(b for p, b in _PATTERNS.items() if p.match(text, found.start()))
        yield text.count("\n", 0, found.start()), phrase, better


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """First line and text of all that people read in a file."""
    text = path.read_text(encoding="utf-8")
    if not _PERHAPS.search(text.lower()):
        return
    if path.suffix == ".md":
        yield 1, text
        return
    inside = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = (getattr(part, "value", "") for part in node.values)
            yield node.lineno, "".join(p if isinstance(p, str) else "{}" for p in parts)
        text_of = str(node.value) if isinstance(node, ast.Constant) else ""
        if " " in text_of and id(node) not in inside:  # without a blank it is a name or a number
            yield node.lineno, text_of
    first, lines = 0, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != first + len(lines):
                yield first, "\n".join(lines)
                first, lines = token.start[0], []
            lines.append(token.string.lstrip("# "))
    yield first, "\n".join(lines)


def files() -> Iterator[Path]:
    """Every page and script that is looked through."""
    for place in PLACES:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in (".md", ".py", ".pyi") and file.name not in GENERATED:
                yield file


def openings(text: str) -> Iterator[tuple[int, str]]:
    """Lines and first words of docstrings that begin with one of ``OPENINGS``."""
    if not any(f'"""{words}' in text for words in OPENINGS):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            if docstring.startswith(OPENINGS):
                yield node.body[0].lineno, " ".join(docstring.split()[:4])


def main() -> int:
    """Print what was found; 1 where there is something."""
    count = 0
    for path in files():
        if path.suffix == ".py" and ROOT / "src" in path.parents:
            for line, words in openings(path.read_text(encoding="utf-8")):
                print(
                    f'{path.relative_to(ROOT)}:{line}: "{words} ...": lead with the noun or a verb'
                )
                count += 1
        for first, text in passages(path):
            for line, phrase, better in findings(text):
                print(f'{path.relative_to(ROOT)}:{first + line}: "{phrase}": {better}')
                count += 1
    print(f"{count} phrases that we no longer use")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
