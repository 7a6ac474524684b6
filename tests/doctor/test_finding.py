"""Findings: what they say, and in which order."""

import re
from pathlib import Path

import pytest

from kinetree import doctor
from kinetree.doctor import KINDS, Finding, Place
from kinetree.doctor.findings import SEVERITIES, finding_of, in_order


def test_a_finding_says_where_why_and_how():
    finding = finding_of("inertia-mass", "body 'arm'", "its mass is -1 kg", Place("a.urdf", 7))
    assert finding.where == "a.urdf:7: body 'arm'"
    assert str(finding) == "error [inertia-mass] a.urdf:7: body 'arm': its mass is -1 kg"
    assert finding.why.startswith("a body with negative mass")
    assert finding.to_dict() == {
        "severity": "error",
        "code": "inertia-mass",
        "file": "a.urdf",
        "line": 7,
        "part": "body 'arm'",
        "message": "its mass is -1 kg",
        "why": finding.why,
        "fix": finding.fix,
    }


def test_without_a_file_it_says_the_part():
    finding = finding_of("limit-order", "joint 'j'", "swapped")
    assert finding.where == "joint 'j'"
    assert (finding.to_dict()["file"], finding.to_dict()["line"]) == (None, None)


def test_the_worst_comes_first_then_the_order_of_the_file_and_nothing_twice():
    findings = [
        finding_of("ignored", "file", "a", Place("f", 1)),
        finding_of("inertia-mass", "body 'b'", "b", Place("f", 9)),
        finding_of("inertia-mass", "body 'b'", "b", Place("f", 9)),
        finding_of("limit-equal", "joint 'c'", "c", Place("f", 2)),
        finding_of("limit-order", "joint 'd'", "d", Place("f", 3)),
    ]
    assert [f.message for f in in_order(findings)] == ["d", "b", "c", "a"]


def test_every_kind_is_complete_and_every_code_in_the_source_is_a_kind():
    for kind in KINDS.values():
        assert kind.severity in SEVERITIES
        for text in (kind.why, kind.fix):
            assert text
            assert text[0].islower()
            assert not text.endswith(".")
    source = "".join(p.read_text() for p in Path(doctor.__file__).parent.glob("*.py"))
    named = set(re.findall(r'(?:finding_of|report)\(\s*f?"([a-z{}-]+)"', source))
    named = named - {"limit-{name}"} | {"limit-effort", "limit-velocity"}
    assert named == set(KINDS)


def test_a_finding_is_a_value():
    assert finding_of("axis", "joint 'j'", "x") == Finding("error", "axis", "joint 'j'", "x")


def test_the_old_name_of_a_fix_warns():
    finding = finding_of("cycle", "joint 'a'", "it is one")
    for thing in (finding, KINDS["cycle"]):
        with pytest.warns(DeprecationWarning, match=r"\.mend is called \w+\.fix"):
            assert thing.mend == KINDS["cycle"].fix
