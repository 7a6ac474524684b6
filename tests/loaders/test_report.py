"""Nothing is dropped in silence."""

import pytest

import kinetree as kt
from kinetree.loaders.report import Notice, Report, in_lines
from kinetree.loaders.xml import Node, parse

TEXT = b"""<robot name='r' color='red'>
  <link name='a'><mass value='1' unit='kg'/></link>
  <gazebo reference='a'><plugin x='1'/></gazebo>
  <link name='b'><texture/></link>
</robot>"""


def report_after(read):
    report = Report("r.urdf")
    root = parse(TEXT, "r.urdf")
    read(Node(root, report))
    report.note_unused(root)
    return [str(notice) for notice in report.in_order()]


def test_every_element_and_attribute_that_nobody_looked_at_is_listed():
    def read(robot):
        robot.get("name")
        for link in robot.all("link"):
            link.get("name")
            for mass in link.all("mass"):
                mass.number("value")

    assert report_after(read) == [
        "r.urdf:1: attribute 'color' of <robot name='r'>: kinetree does not use it",
        "r.urdf:2: attribute 'unit' of <mass>: kinetree does not use it",
        "r.urdf:3: <gazebo reference='a'>: kinetree does not use it",
        "r.urdf:4: <texture>: kinetree does not use it",
    ]


def test_what_is_settled_with_a_reason_is_not_listed_twice():
    def read(robot):
        robot.get("name"), robot.get("color")
        for link in robot.all("link"):
            link.ignore("links are dull")
        robot.one("gazebo").note("plugin", "no simulator here")
        robot.report.use_all(robot.one("gazebo").element)

    assert report_after(read) == [
        "r.urdf:2: <link name='a'>: links are dull",
        "r.urdf:3: plugin: no simulator here",
        "r.urdf:4: <link name='b'>: links are dull",
    ]


def test_what_holds_anyway_is_not_listed():
    text = "<link><gravity>{}</gravity><kinematic>{}</kinematic></link>"
    for values, expected in ((("1", "false"), []), (("0", "true"), ["<gravity>", "<kinematic>"])):
        report, root = Report(), parse(text.format(*values).encode(), "r.sdf")
        report.use(root)
        report.note_unused(root)
        assert [notice.what for notice in report.notices] == expected


def test_nothing_is_listed_when_all_was_read():
    assert report_after(lambda robot: robot.report.use_all(robot.element)) == []


def test_notices_without_a_line_name_the_file():
    report = Report("a.toml")
    report.ignore(None, "table 'x'", "unknown")
    report.ignore(7, "key 'y'", "unknown")
    assert list(map(str, report.notices)) == [
        "a.toml: table 'x': unknown",
        "a.toml:7: key 'y': unknown",
    ]
    assert report.notices[1] == Notice("a.toml", 7, "key 'y'", "unknown")


LOSSES = b"""<robot>
  <visual><texture/></visual>
  <rope/>
  <sensor name='s'/>
  <collision><mesh/></collision>
  <visual><texture/></visual>
  <visual><mesh/></visual>
  <rope/>
</robot>"""


def test_what_changes_motion_comes_first_and_pictures_are_one_line():
    effects = {"visual": "picture", "collision": "contact", "sensor": "control"}
    report = Report("r.urdf", effects)
    root = parse(LOSSES, "r.urdf")
    for node in Node(root, report).all("visual", "collision"):
        for inner in node.all("mesh"):
            inner.note("<mesh>", "no such file")
    report.note_unused(root)
    found = report.in_order()
    assert [(n.effect, n.line) for n in found] == [
        ("motion", 3), ("motion", 8), ("contact", 5), ("control", 4),
        ("picture", 2), ("picture", 6), ("picture", 7),
    ]  # fmt: skip
    assert in_lines(found) == [
        "r.urdf:3: <rope>: kinetree does not use it (and 1 more of this kind)",
        "r.urdf:5: <mesh>: no such file",
        "r.urdf:4: <sensor name='s'>: kinetree does not use it",
        "for pictures only, 3 notices: <texture>, <mesh>",
    ]
    assert in_lines(n for n in found if n.what == "<texture>") == [
        "r.urdf:2: <texture>: kinetree does not use it (and 1 more of this kind)"
    ]


def test_long_lists_are_cut_but_for_what_changes_motion():
    report = Report("r.xml")
    for k in range(30):
        report.ignore(k, f"<a{k}>", effect="setting")
        report.ignore(k, f"<b{k}>", effect="motion")
    lines = in_lines(report.in_order())
    assert [line.split(": ")[1] for line in lines[:30]] == [f"<b{k}>" for k in range(30)]
    assert lines[30:] == ["and 30 other kinds (model.report lists them)"]


def test_errors_with_and_without_a_place():
    report = Report("a.toml")
    assert str(report.error(None, "bad")) == "a.toml: bad"
    assert str(report.error(3, "bad")) == "a.toml:3: bad"


def test_notices_of_one_kind_are_one_line():
    report = Report("r.urdf")
    for k, name in enumerate(("FL", "FR", "RL")):
        report.ignore(k, f"attribute 'keep' of <joint name='{name}'>")
        report.ignore(k, f"geometry {k + 9}: mesh", "it is missing")
    assert in_lines(report.in_order()) == [
        "r.urdf:0: attribute 'keep' of <joint name='FL'>: kinetree does not use it "
        "(and 2 more of this kind)",
        "r.urdf:0: geometry 9: mesh: it is missing (and 2 more of this kind)",
    ]


def test_a_typing_error_is_answered_by_what_was_meant():
    text = (
        "<robot name='r'><link name='a'/><link name='b'><inertal><mass value='1'/></inertal></link>"
        "<joint name='j' type='revolute'><parent link='a'/><child link='b'/>"
        "<limit lowr='-1' upper='1' effort='1' velocity='1'/></joint></robot>"
    )
    with pytest.warns(kt.ModelWarning) as warned:
        kt.loads(text)
    said = str(warned[0].message)
    assert "attribute 'lowr' of <limit>: kinetree does not use it; did you mean 'lower'?" in said
    assert "<inertal>: kinetree does not use it; did you mean 'inertial'?" in said
