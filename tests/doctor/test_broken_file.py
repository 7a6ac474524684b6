"""A file that no model can be built from still gives all its faults, each at its line."""

import warnings
from pathlib import Path

import pytest

from kinetree.doctor import check
from kinetree.errors import LoadError, ModelError
from kinetree.loaders import read

DATA = Path(__file__).parent / "data"

PLANTED = {
    ("inertia-mass", 12, "body 'shoulder'"),
    ("limit-order", 20, "joint 'j1'"),
    ("inertia-triangle", 26, "body 'upper_arm'"),
    ("unit-length", 29, "joint 'j2'"),
    ("axis", 33, "joint 'j2'"),
    ("limit-effort", 34, "joint 'j2'"),
    ("unit-angle", 34, "joint 'j2'"),
    ("inertia-positive", 40, "body 'forearm'"),
    ("joint-type", 43, "joint 'j3'"),
    ("massless", 49, "joint 'j4'"),
    ("limit-missing", 49, "joint 'j4'"),
    ("unknown-name", 53, "joint 'j4'"),
    ("duplicate-name", 56, "body 'forearm'"),
    ("number", 58, "body 'forearm'"),
    ("number", 59, "body 'forearm'"),
    ("duplicate-name", 62, "joint 'j4'"),
    ("two-parents", 62, "body 'upper_arm'"),
    ("unknown-name", 63, "joint 'j4'"),
    ("several-roots", 67, "body 'loose'"),
    ("cycle", 74, "joint 'hatches'"),
    ("incomplete", 78, "joint 'dangling'"),
    ("mesh-missing", 6, "body 'base'"),
}


def test_every_planted_fault_is_found_and_nothing_else():
    path = str(DATA / "broken.urdf")
    findings = check(path)
    assert {(f.code, f.place.line, f.part) for f in findings} == PLANTED
    assert all(f.place.file == path for f in findings)
    with pytest.raises(LoadError):
        read(path)


def test_suspicious_but_possible():
    found = {(f.severity, f.code, f.part) for f in check(DATA / "suspicious.urdf")}
    assert found == {
        ("error", "massless", "joint 'spin'"),
        ("warning", "unit-mass", "body 'column'"),
        ("warning", "unit-angle", "joint 'turn'"),
        ("warning", "unit-inertia", "body 'beam'"),
        ("warning", "center-outside", "body 'beam'"),
        ("warning", "limit-equal", "joint 'lift'"),
        ("warning", "limit-effort", "joint 'lift'"),
        ("warning", "limit-velocity", "joint 'lift'"),
        ("warning", "coupling-limits", "joint 'grip'"),
        ("note", "ignored", "<gazebo reference='jaw'>"),
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<robot", "not well-formed XML"),
        (b"\x00\xff\x13binary", ""),
        (b"", ""),
        (b"<robot name='r'/>", "no <link>"),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><robot name='r'><link name='&a;'/></robot>", "DOCTYPE"),
    ],
)
def test_what_is_not_a_robot_is_one_finding(tmp_path, content, message):
    path = tmp_path / "odd.urdf"
    path.write_bytes(content)
    (finding,) = check(path)
    assert (finding.severity, finding.code) == ("error", "unreadable")
    assert message in finding.message
    assert str(path) not in finding.message


def test_a_file_that_does_not_exist_is_a_finding():
    (finding,) = check("no/such/robot.urdf")
    assert finding.code == "unreadable"
    assert "no such file" in finding.message


def test_only_models_and_paths_are_taken():
    with pytest.raises(ModelError, match="takes a Model or the path of a file, got int"):
        check(3)


LINK = """<link name="{name}"><inertial><mass value="{mass}"/>
<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<axis xyz="0 0 1"/><limit lower="{low}" upper="{high}" effort="1" velocity="1"/></joint>"""


def robot(tmp_path, mass=1.0, i=0.01, low=-1, high=1):
    text = LINK.format(name="a", mass=mass, i=i) + LINK.format(name="b", mass=mass, i=i)
    text += JOINT.format(name="j", parent="a", child="b", low=low, high=high)
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{text}</robot>')
    return path


def test_a_good_file_has_no_finding(tmp_path):
    assert check(robot(tmp_path)) == ()


@pytest.mark.parametrize("size", ["1e308", "1e-308", "1e200"])
def test_enormous_numbers_do_not_stop_it(tmp_path, size):
    check(robot(tmp_path, mass=size, i=size, low=f"-{size}", high=size))


def test_thousands_of_links_are_quick(tmp_path):
    links = "".join(LINK.format(name=f"l{k}", mass=1, i=0.01) for k in range(600))
    joints = "".join(
        JOINT.format(name=f"j{k}", parent=f"l{(k + 1) % 600}", child=f"l{k}", low=-1, high=1)
        for k in range(600)
    )
    path = tmp_path / "ring.urdf"
    path.write_text(f'<robot name="ring">{links}{joints}</robot>')
    (finding,) = [f for f in check(path) if f.code == "cycle"]
    assert len(finding.message) < 1000


LOSSY = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<dynamics K="7" D="3"/>
<mimic joint="nobody"/></joint><gazebo/></robot>"""


def test_losses_of_the_loader_are_findings_and_said_once(tmp_path):
    path = tmp_path / "lossy.urdf"
    path.write_text(LOSSY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        findings = check(path)
    said = [(f.severity, f.code, f.place.line) for f in findings]
    assert ("error", "unknown-name", 5) in said
    assert [s for s in said if s[1].startswith("ignored")] == [
        ("warning", "ignored-motion", 4), ("warning", "ignored-motion", 4), ("note", "ignored", 5),
    ]  # fmt: skip
