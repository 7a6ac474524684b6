"""Phrases and names that we no longer use, with what to write instead.

    python .ci/words.py             lists where they are; exits with 1 when there are any
    python .ci/words.py --names     lists names of the source that are to be replaced, too
    python .ci/words.py --shrink    lower the counts in words_known.txt to those of today

Looked through are pages, README, scripts and the source: docstrings, messages and comments. A line
break within a phrase does not hide it. Docstrings of the source must not begin with one of
``OPENINGS``: they lead with the noun, or with a verb.

Names of functions are verbs, or the quantity that they return, not bare participles such as
``held``; properties may say what something is. Two packages have no classes of one name. What
broke this when the rule came is counted by package in ``words_known.txt``: it may shrink, and not
grow. Public names, which users call or import, stay: they are listed there with the reason.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
_FIRST = "As|At|By|In|It|Its|Of|That|The same|Those|To|What|Which|While"
OPENINGS = (*(f"{words} " for words in _FIRST.split("|")), "The same,", "The same.")
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


# --- Names ---------------------------------------------------------------------------------------

KNOWN = Path(__file__).with_name("words_known.txt")
HEADER = """\
# Names that break the rules of words.py; they may become fewer.
# participles PACKAGE COUNT: functions named by bare participles.  public PACKAGE NAME, reason: one
# that users call.  class NAME PACKAGE..., reason: public in these packages, and in no others.
"""
IRREGULAR = re.findall(
    r"\w+",
    "become begun bent borne bought bound broken brought built caught chosen dealt done drawn "
    "driven fed felt flown forgotten found frozen given gone grown heard held hidden hung "
    "kept known laid led lent lit lost made meant met mistaken paid proven rung said seen "
    "sent shaken shown sold sought spent spoken stolen struck stuck swept swung taken taught "
    "thought thrown told torn undone withdrawn woken won worn wound woven written ",
)
"""Participles that do not end in ``ed``."""
NO_PARTICIPLES = {"feed", "need", "quadruped", "seed", "speed", "wrapped", "decorated"}
"""Verbs and nouns, and what decorators return by convention."""
_FUNCTION = re.compile(r"(?m)^[ \t]*(?:async )?def _*([a-z]+)\(")
_CLASS = re.compile(r"(?m)^[ \t]*class ([A-Z]\w*)")


def is_participle(word: str) -> bool:
    """Whether a word is a bare participle."""
    return (word.endswith("ed") or word in IRREGULAR) and word not in NO_PARTICIPLES


def package_of(path: Path) -> str:
    """Package or module at the top that a file of the source belongs to."""
    return path.relative_to(ROOT / "src" / "kinetree").parts[0].removesuffix(".py")


class KnownNames(NamedTuple):
    """Names that may break the rules, as ``words_known.txt`` lists them."""

    counts: dict[str, int]
    """How many participles a package may have."""
    public: dict[str, str]
    """Public participles, ``"package name"``, and why they stay."""
    classes: dict[str, tuple[set[str], str]]
    """Class names with the packages that may have them, and why."""


def participles(known: KnownNames) -> dict[str, list[str]]:
    """Functions that are named by a bare participle, as places with names, by package."""
    found = defaultdict(list)
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for match in _FUNCTION.finditer(text):
            above = text[: match.start()].rpartition("\n")[0].rpartition("\n")[2]
            public = f"{package_of(path)} {match[1]}" in known.public
            if is_participle(match[1]) and "property" not in above and not public:
                line = text.count("\n", 0, match.start(1)) + 1
                place = f"{path.relative_to(ROOT).as_posix()}:{line}"
                found[package_of(path)].append(f"{place}: {match[1]}")
    return found


def twins() -> dict[str, set[str]]:
    """Public class names that several packages have, with these."""
    found = defaultdict(set)
    for path in sorted((ROOT / "src").rglob("*.py")):
        for name in _CLASS.findall(path.read_text(encoding="utf-8")):
            found[name].add(package_of(path))
    return {name: packages for name, packages in found.items() if len(packages) > 1}


def known_names() -> KnownNames:
    """Names that ``words_known.txt`` lists."""
    known = KnownNames({}, {}, {})
    for line in KNOWN.read_text(encoding="utf-8").splitlines() if KNOWN.exists() else ():
        names, _, reason = line.partition(", ")
        kind, *words = names.split()
        if kind == "participles":
            known.counts[words[0]] = int(words[1])
        elif kind == "public":
            known.public[" ".join(words)] = reason
        elif kind == "class":
            known.classes[words[0]] = set(words[1:]), reason
    return known


def shrunk(known: KnownNames, several: dict[str, set[str]]) -> KnownNames:
    """Known names without those that are gone."""
    found, every = participles(known), participles(KnownNames({}, {}, {}))
    present = {f"{p} {line.rpartition(' ')[2]}" for p, lines in every.items() for line in lines}
    return KnownNames(
        {p: min(len(lines), known.counts.get(p, len(lines))) for p, lines in found.items()},
        {name: why for name, why in known.public.items() if name in present},
        {n: (p & several[n], why) for n, (p, why) in known.classes.items() if n in several},
    )


def write_known(known: KnownNames) -> None:
    """Write ``words_known.txt``."""
    lines = [f"participles {package} {n}" for package, n in sorted(known.counts.items()) if n]
    lines += [f"public {name}, {reason}" for name, reason in sorted(known.public.items())]
    for name, (packages, reason) in sorted(known.classes.items()):
        lines.append(f"class {' '.join([name, *sorted(packages)])}, {reason}")
    KNOWN.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


def check_names(*, listed: bool, shrink: bool) -> int:
    """Print names that break the rules more often than is known, or all; how many they are."""
    known, several = known_names(), twins()
    if shrink:
        known = shrunk(known, several)
        write_known(known)
    found, count = participles(known), 0
    for package, names in found.items():
        more = len(names) > known.counts.get(package, 0)
        count += more * (len(names) - known.counts.get(package, 0))
        for name in names if more or listed else ():
            print(f"{name}: a function is a verb, or the quantity that it returns")
    new = {n: p for n, p in several.items() if not p <= known.classes.get(n, (set(), ""))[0]}
    for name, packages in new.items():
        print(f"class {name} is in {', '.join(sorted(packages))}: say which in the name")
    for name, reason in known.public.items() if listed else ():
        print(f"{name} is public: {reason}")
    for name, (packages, reason) in known.classes.items() if listed else ():
        print(f"class {name} is public in {', '.join(sorted(packages))}: {reason}")
    print(
        f"{sum(map(len, found.values()))} functions named by participles and {len(known.public)} "
        f"public ones; {len(new)} class names in several packages and {len(known.classes)} public"
    )
    return count + len(new)


def main(arguments=()) -> int:
    """Print what was found; 1 where there is something."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--names", action="store_true", help="list all names to be replaced")
    parser.add_argument("--shrink", action="store_true", help="lower what is known of names")
    options = parser.parse_args(arguments)
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
    count += check_names(listed=options.names, shrink=options.shrink)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
