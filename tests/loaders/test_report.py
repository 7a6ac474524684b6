"""Nothing is dropped in silence."""

from kinetree.loaders.report import Notice, Report
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
    report.unused(root)
    return [str(notice) for notice in report.notices]


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
            link.ignored("links are dull")
        robot.one("gazebo").note("plugin", "no simulator here")
        robot.report.use_all(robot.one("gazebo").element)

    assert report_after(read) == [
        "r.urdf:2: <link name='a'>: links are dull",
        "r.urdf:3: plugin: no simulator here",
        "r.urdf:4: <link name='b'>: links are dull",
    ]


def test_nothing_is_listed_when_all_was_read():
    assert report_after(lambda robot: robot.report.use_all(robot.element)) == []


def test_notices_without_a_line_name_the_file():
    report = Report("a.toml")
    report.ignored(None, "table 'x'", "unknown")
    report.ignored(7, "key 'y'", "unknown")
    assert list(map(str, report.notices)) == [
        "a.toml: table 'x': unknown",
        "a.toml:7: key 'y': unknown",
    ]
    assert report.notices[1] == Notice("a.toml", 7, "key 'y'", "unknown")


def test_errors_with_and_without_a_place():
    report = Report("a.toml")
    assert str(report.error(None, "bad")) == "a.toml: bad"
    assert str(report.error(3, "bad")) == "a.toml:3: bad"
