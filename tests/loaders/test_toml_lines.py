"""Messages say where in a TOML file something stands."""

import pytest

from kinetree.errors import LoadError
from kinetree.loaders.toml.document import Document, key_lines

TEXT = '''# a comment
name = "x"  # body = 3

[parameters]
length = 1
"quoted key" = 2

[[body]]
name = "a"
inertia = [
  { mass = 1 },
  { mass = 2 },
]
text = """
name = "not a key"
[[body]]
"""

[[body]]
  name = "b"
  joint.type = "fixed"

[body.limits]
lower = 0

[[frame]]
at = [0, "[", 0]
name = "f"
'''


def test_lines_of_keys_and_tables():
    lines = key_lines(TEXT)
    assert lines[("name",)] == 2
    assert lines[("parameters", "length")] == 5
    assert lines[("parameters", "quoted key")] == 6
    assert lines[("body", 0)] == 8
    assert lines[("body", 0, "inertia")] == 10
    assert lines[("body", 0, "text")] == 14
    assert lines[("body", 1)] == 19
    assert lines[("body", 1, "joint", "type")] == 21
    assert lines[("body", 1, "limits", "lower")] == 24
    assert lines[("frame", 0, "name")] == 28
    assert ("body", 2) not in lines


def test_the_closest_known_line_is_taken():
    document = Document(TEXT.encode(), "arm.toml")
    assert document.line(("body", 0, "inertia", "mass")) == 10
    assert document.line(("nothing",)) == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"a = \n", "arm.toml:1: not TOML: Invalid value, column 5"),
        (b"a = 1\nb = [1,\n\n", "arm.toml:4: not TOML"),
        (b"a = 1\na = 2", "arm.toml:2: not TOML: Cannot overwrite a value"),
        (b"a = 1\n\xff", "arm.toml:2: byte 6 is not UTF-8 text"),
        ("a = 1".encode("utf-16"), "arm.toml:1: byte 0 is not UTF-8 text"),
        (b"a = 1\n\0", "arm.toml:2: the file holds a zero byte"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"{a=" * 5000, "nested too deeply"),
        (b"a." * 500 + b"b = 1", "500 dots"),
        (b"[" + b"a." * 500 + b"b]", "500 dots"),
        (b"a = " + b"9" * 5000, "not TOML"),
        (b"\n[a]" * 20_001, "tables; at most 20000"),
        (b" " * (5 * 2**20), "bytes; at most"),
    ],
)
def test_what_is_not_read(source, message):
    with pytest.raises(LoadError) as caught:
        Document(source, "arm.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("arm.toml:")


def test_a_mark_in_front_and_line_ends_do_not_matter():
    document = Document(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n", "arm.toml")
    assert document.data == {"a": 1, "b": 2}
    assert document.line(("b",)) == 2
