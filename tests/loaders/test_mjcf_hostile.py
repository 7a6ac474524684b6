"""Broken and hostile MJCF: an error of ours with file and line, nothing read from elsewhere."""

import os
import sys

import pytest
from support.mujoco_mechanisms import loaded

from kinetree.errors import InteropError, LoadError
from kinetree.loaders import loads, read
from kinetree.loaders.mjcf import MissingLibraryError

_BODY = '<body name="b"><joint name="j"/><geom name="g" size=".1"/></body>'


def world(inside=_BODY, before="", after=""):
    return f"<mujoco>\n{before}\n<worldbody>\n{inside}\n</worldbody>\n{after}\n</mujoco>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco>\n<worldbody>", r"^<text>:2: this is not well-formed XML"),
        ("<mujocoinclude/>", r"^<text>:1: the root element of MJCF .* a file that others include"),
        (world("<body><joint foo='1'/></body>"), r"^<text>:4: <joint>: MuJoCo: .*'foo'$"),
        (world("<body>\n\n<joint axis='0 0 0'/><geom size='1'/></body>"), r"^<text>:6: <joint>: M"),
        (world("<body name='x'><joint/></body>"), r"^<text>:4: <body name='x'>: MuJoCo: .* mass"),
        (
            world("<body><joint armature='1 nan'/></body>"),
            r"^<text>:4: <joint>: .* 'armature' must",
        ),
        (world("<body pos='1e400 0 0'/>"), r"^<text>:4: <body>: MuJoCo: .*too large"),
        (world("<body pos='inf 0 0'/>"), r"pos of a body is not finite"),
        (world(before="<option gravity='inf 0 0'/>"), r"gravity must be finite"),
        (
            world(after="<equality><joint joint1='x'/></equality>"),
            r"^<text>:6: <joint>: MuJoCo: .*'x'",
        ),
        (world(before="<default><default/></default>"), r"^<text>:2: <default>: MuJoCo: "),
        (
            world(f"<replicate count='1e9'>{_BODY}</replicate>"),
            r"more than 30000 elements, with all",
        ),
        (
            world(f"<replicate count='110'><replicate count='110'>{_BODY}</replicate></replicate>"),
            r"more than 10000 bodies",
        ),
        (
            world(
                "<replicate count='2000'><site name='s'/></replicate>" + _BODY,
                after="<sensor>" + "<gyro site='s'/>" * 20 + "</sensor>",
            ),
            r"^<text>:6: <gyro>: more than 30000 elements, with all copies",
        ),
        (
            world("<flexcomp name='f' count='99 99 99'/>"),
            r"^<text>:4: <flexcomp name='f'>: nothing moves here but what",
        ),
        (world("<flexcomp/>" * 1001), r"^<text>:4: <flexcomp>: more than 1000 flexible bodies"),
        (world(before="<asset><hfield name='h' nrow='99999' ncol='99999'/></asset>"), r"heights$"),
        (
            world(before="<asset><mesh name='h' builtin='sphere' params='1e6'/></asset>"),
            r"at most 256$",
        ),
        (world("<frame>" * 260 + "</frame>" * 260), r"Excessive depth"),
        (world("<body><joint/>" + "<site/>" * 30_000 + "</body>"), r"more than 30000 elements"),
        (world(_BODY + _BODY), r"MuJoCo: .*repeated name 'b'"),
        (world("<include/>"), r"^<text>:4: <include>: '' is not a file name"),
        (world("<include file='http://x/y.xml'/>"), r"<include>: .* kinetree fetches nothing"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><mujoco/>", r"document type"),
    ],
)
def test_the_error_says_what_and_where(text, message):
    with pytest.raises(LoadError, match=message):
        loaded(text)


@pytest.mark.parametrize(
    "element",
    [
        "<include file='{}'/>",
        "<asset><mesh file='{}'/></asset>",
        "<asset><model name='m' file='{}'/></asset>",
        "<asset><hfield name='h' file='{}' size='1 1 1 1'/></asset>",
        "<compiler meshdir='/etc'/><asset><mesh file='passwd'/></asset>",
    ],
)
@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.xml", "link.xml", "absent.xml"])
def test_no_file_outside_the_folder_is_read(element, name, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "secret.xml").write_text("<mujoco><worldbody/></mujoco>")
    os.symlink(tmp_path / "secret.xml", folder / "link.xml")
    path = folder / "robot.xml"
    path.write_text(world(before=element.format(name)))
    with pytest.raises(LoadError, match=r"robot\.xml:2: <.*(lies outside|does not exist)"):
        read(path)


def test_a_file_is_included_once_and_not_by_itself(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(world("<include file='robot.xml'/>"))
    with pytest.raises(LoadError, match=r"is included twice; MJCF allows it once"):
        read(path)
    (tmp_path / "empty.xml").write_text("<x/>")
    path.write_text(world("<include file='empty.xml'/>"))
    with pytest.raises(LoadError, match=r"has nothing to include"):
        read(path)


def test_errors_in_included_files_name_them(tmp_path):
    (tmp_path / "part.xml").write_text("<x>\n\n<body><joint typ='hinge'/></body></x>")
    path = tmp_path / "robot.xml"
    path.write_text(world("<include file='part.xml'/>"))
    with pytest.raises(LoadError, match=r"part\.xml:3: <joint>: MuJoCo: .*'typ'"):
        read(path)


def test_models_do_not_attach_themselves(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(world(before="<asset><model name='m' file='robot.xml'/></asset>"))
    with pytest.raises(LoadError, match=r"<model name='m'>: .* attaches itself"):
        read(path)


def test_copies_of_attached_models_count(tmp_path):
    (tmp_path / "many.xml").write_text(world("<body name='r'>" + "<body/>" * 1000 + "</body>"))
    path = tmp_path / "robot.xml"
    attach = "".join(f"<attach model='m' body='r' prefix='{k}'/>" for k in range(11))
    path.write_text(world(attach, "<asset><model name='m' file='many.xml'/></asset>"))
    with pytest.raises(LoadError, match=r"<attach>: more than 10000 bodies"):
        read(path)


def test_memory_and_time_are_not_the_files_to_ask_for():
    before = (
        "<size memory='999999T' nuserdata='999999999'/>"
        "<compiler><lengthrange mode='all' timestep='1e-9' inttotal='1e9'/></compiler>"
        "<asset><texture name='t' builtin='flat' width='999999' height='999999'/></asset>"
    )
    after = (
        "<custom><numeric name='n' size='999999999'/></custom>"
        "<sensor><jointpos joint='j' nsample='99999999' delay='1'/></sensor>"
    )
    assert loaded(world(before=before, after=after)).nv == 1


def test_nothing_is_printed_or_logged(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    loaded(world(before="<compiler settotalmass='2'/>"))
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "print(model.report)" in shown.err  # our line of the log, and none of MuJoCo's
    assert len(shown.err.splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_names_of_any_kind_come_through():
    name = "a \"b\" 'c' &lt;d&gt; $(e); &#10;`f` é"
    model = loaded(
        world(f"<body name=\"{name.replace(chr(34), '&quot;')}\"><joint/><geom size='.1'/></body>")
    )
    assert model.body_names[1] == "a \"b\" 'c' <d> $(e); \n`f` é"


def test_without_mujoco_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(LoadError, match=r'pip install "kinetree\[mjcf\]"') as caught:
        loads(world(), "mjcf")
    assert isinstance(caught.value, MissingLibraryError)
    assert isinstance(caught.value, InteropError)
    assert isinstance(caught.value, ImportError)


def test_the_listener_of_the_user_stays():
    import mujoco

    def listener(text):
        pass

    mujoco.set_mju_user_warning(listener)
    try:
        loaded(world())
        assert mujoco.get_mju_user_warning() is listener
    finally:
        mujoco.set_mju_user_warning(None)
