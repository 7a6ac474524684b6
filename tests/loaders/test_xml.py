"""XML from strangers."""

import pytest
from support.effort import assert_quick

from kinetree.errors import LoadError
from kinetree.loaders import xml
from kinetree.loaders.report import Report
from kinetree.loaders.xml import Node, numbers_in, parse, root_tag
from kinetree.loaders.xml_repairs import repair_xml


def node(text):
    return Node(parse(text.encode(), "robot.xml"), Report("robot.xml"))


def test_elements_know_their_line():
    root = parse(b"<robot>\n\n<link/>\n</robot>", "robot.urdf")
    assert (root.sourceline, root[0].sourceline) == (1, 3)


def test_comments_and_processing_instructions_are_gone():
    root = parse(b"<?xml version='1.0'?><!-- a --><r><?b?><!-- c --><d/></r>", "x")
    assert [child.tag for child in root] == ["d"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", r"robot.urdf: this is not well-formed XML: no element found"),
        (b"<robot>\n<link>\n</robot>", r"robot.urdf:3: this is not well-formed XML: Opening and"),
        (b"\x00\x01\x02\xff", r"robot.urdf:1: this is not well-formed XML"),
        (b"<robot name='\xe9'/>", r"robot.urdf:1: this is not well-formed XML: Invalid bytes"),
        (b"<robot/>junk", r"robot.urdf:1: this is not well-formed XML: Extra content"),
        (b"<robot a='1' a='2'/>", r"robot.urdf:1: this is not well-formed XML: Attribute a redef"),
        (b"<robot name='a\x00b'/>", r"robot.urdf:1: this is not well-formed XML"),
    ],
)
def test_what_is_not_xml_is_rejected_with_the_line(source, message):
    with pytest.raises(LoadError, match=message):
        parse(source, "robot.urdf")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_encodings_that_the_file_declares_are_read(encoding):
    text = f"<?xml version='1.0' encoding='{encoding}'?><robot name='Gelenk für Füße'/>"
    assert parse(text.encode(encoding), "x").get("name") == "Gelenk für Füße"


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "cp1252"])
@pytest.mark.parametrize(
    ("before", "version"),
    [("", " version='1.0'"), ("\n \n", " version='1.0'"), ("", ""), ("\n\n", "\nversion='0.0'\n")],
)
def test_a_faulty_declaration_keeps_lines_and_encoding(encoding, before, version):
    head = f"{before}<?xml{version} encoding='{encoding}'?>\n<robot name='Füße'>\n"
    root = parse(f"{head}<link name='é'/></robot>".encode(encoding), "x")
    assert (root.get("name"), root[0].get("name")) == ("Füße", "é")
    assert root[0].sourceline == 1 + head.count("\n")
    with pytest.raises(LoadError, match=f"^x:{1 + head.count(chr(10))}: "):
        parse(f"{head}<link></robot>".encode(encoding), "x")


BOMB = (
    "<!DOCTYPE r [<!ENTITY a0 'ha'>"
    + "".join(f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 12))
    + "]><robot name='&a11;'>&a11;</robot>"
)
EXTERNAL = "<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><robot>&x;</robot>"


HOSTILE = {
    "bomb": (BOMB.encode, "entity amplification|document type"),
    "bomb in utf-16": (lambda: BOMB.encode("utf-16"), "entity amplification|document type"),
    "file": (EXTERNAL.encode, "document type"),
    "network": (
        lambda: b"<!DOCTYPE robot SYSTEM 'http://localhost:9/x.dtd'><robot/>",
        "document type",
    ),
    "deep": (lambda: b"<robot>" + b"<a>" * 100_000, "Excessive depth in document: 256"),
    "100 MB": (
        lambda: b"<robot name='" + b"x" * 100_000_000 + b"'/>",
        "100000016 bytes; kinetree reads at most",
    ),
    "30 MB": (
        lambda: b"<robot name='" + b"x" * 30_000_000 + b"'/>",
        "Buffer size limit exceeded",
    ),
    "many": (
        lambda: b"<robot>" + b"<link/>" * 1_000_000 + b"</robot>",
        "more than 100000 XML elements",
    ),
    "wide": (
        lambda: b"<r " + b" ".join(b"a%d='1'" % i for i in range(300_000)) + b"/>",
        r"<r> has 300000 attributes; at most 500 are read",
    ),
}
"""Files that would take memory or time, made when they are read: as arguments they would stay."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_rejected_quickly(name):
    make, message = HOSTILE[name]
    source = make()

    def refuse():
        with pytest.raises(LoadError, match=message):
            parse(source, "x")

    assert_quick(refuse, 3)


def test_prefixes_without_a_declaration_do_no_harm():
    root = parse(b"<robot><kinetree:loop name='a'/></robot>", "x")
    assert Node(root, Report()).one("kinetree:loop").get("name") == "a"


def test_but_other_errors_are_not_forgiven_for_that():
    with pytest.raises(LoadError, match=r"x:2: .*mismatch"):
        parse(b"<robot><a:b/>\n<link></robot>", "x")


def test_default_namespace_is_left_out_and_a_prefix_is_not():
    root = node("<robot xmlns='urn:a' xmlns:s='urn:b'><link/><s:link/></robot>")
    assert root.tag == "robot"
    assert len(root.all("link")) == 1
    assert root.one("s:link").tag == "s:link"


@pytest.mark.parametrize(
    ("source", "tag"),
    [
        (b"<!-- <sdf> --><robot><", "robot"),
        ("<?xml version='1.0' encoding='utf-16'?><sdf/>".encode("utf-16"), "sdf"),
        (b"[dh]\nconvention = 1", None),
        (b"", None),
        (b"<!-- nothing -->", None),
    ],
)
def test_root_tag_is_found_without_reading_on(source, tag):
    assert root_tag(source) == tag


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1 -2.5\n3e-2", (1.0, -2.5, 0.03)),
        (".5 5. +1E3", (0.5, 5.0, 1000.0)),
        ("", ()),
    ],
)
def test_numbers(text, values):
    assert numbers_in(text) == values


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [
        ("1 2", 3, "must be 3 numbers, got '1 2'"),
        ("", 1, "must be a number, got ''"),
        ("1 b 3", 3, "must hold numbers, got 'b'"),
        ("1_000", 1, "must hold numbers, got '1_000'"),
        ("٣", 1, "must hold numbers"),
        ("0x10", 1, "must hold numbers"),
        ("nan", 1, "must be finite, got 'nan'"),
        ("1e999", 1, "must be finite, got '1e999'"),
        ("-inf", 1, "must be finite, got '-inf'"),
    ],
)
def test_what_is_not_a_number(text, count, message):
    with pytest.raises(ValueError, match=message):
        numbers_in(text, count)


def test_infinity_where_it_is_allowed_but_never_nan():
    assert numbers_in("-inf inf", finite=False) == (float("-inf"), float("inf"))
    with pytest.raises(ValueError, match="must be finite"):
        numbers_in("nan", finite=False)


def test_attributes_of_a_node():
    a = node("<joint name='a' xyz='1 2 3' size='4'/>")
    assert (a.get("name"), a.get("none"), a.get("none", "b")) == ("a", None, "b")
    assert a.numbers("xyz", 3) == (1.0, 2.0, 3.0)
    assert a.numbers("rpy", 3, (0.0,)) == (0.0,)
    assert (a.number("size"), a.number("other", 5.0)) == (4.0, 5.0)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda n: n.need("link"), "robot.xml:1: <joint name='a'>: attribute 'link' is missing"),
        (lambda n: n.need("empty"), "attribute 'empty' is empty"),
        (lambda n: n.number("xyz"), "attribute 'xyz' must be a number, got '1 2'"),
        (lambda n: n.numbers("rpy", 3), "attribute 'rpy' is missing"),
        (lambda n: n.need_one("axis"), "<joint name='a'>: has no <axis>"),
        (lambda n: n.one("b"), "robot.xml:1: <b>: joint has a second <b>; only one is allowed"),
        (lambda n: n.text_numbers(1), "the content must be a number, got ''"),
    ],
)
def test_what_is_missing_or_wrong_is_reported_with_file_line_and_tag(read, message):
    with pytest.raises(LoadError, match=message):
        read(node("<joint name='a' empty='' xyz='1 2'><b/><b/></joint>"))


def test_long_values_are_cut_in_messages():
    long = node(f"<joint name='{'n' * 1000}' x='{'y' * 1000}'/>")
    with pytest.raises(LoadError) as caught:
        long.number("x")
    assert len(str(caught.value)) < 300


def test_content_of_a_node():
    assert node("<a> 1 2 </a>").text() == "1 2"
    assert node("<a> 1 2 </a>").text_numbers(2) == (1.0, 2.0)
    assert node("<a/>").text() == ""


def test_the_limits_fit_real_files():
    assert xml.LIMIT_BYTES >= 10_000_000


def test_repairs_keep_lines():
    text = b"\n<?xml version='0.0'\n?>\n<!DOCTYPE robot>\n<!-- a -- b --->\n<robot name='a&b'/>"
    root = parse(text, "x")
    assert (root.sourceline, root.get("name")) == (6, "a&b")
    source, notes = repair_xml(text)
    assert source.count(b"\n") == text.count(b"\n")
    assert [what for what, _ in notes] == ["<?xml?>", "<!DOCTYPE>", "a comment", "'&'"]
    assert repair_xml(source) == (source, [])


@pytest.mark.parametrize("part", [b"<!--", b"-->", b"<!-- --", b"&", b"&a", b"<!DOCTYPE r ", b"-"])
def test_repairs_take_time_in_proportion_to_the_text(part):
    assert_quick(lambda: repair_xml(b"<robot>" + part * 1_000_000), 2)


def test_texts_that_are_not_xml_or_have_wide_characters_are_left_as_they_are():
    for text in (b"a & b", b'{"a": "&"}', "<?xml version='0'?><a/>".encode("utf-16")):
        assert repair_xml(text) == (text, [])
