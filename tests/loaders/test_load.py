"""load, loads, read: formats, warnings, strict."""

import json
import os
from pathlib import Path

import pytest
from support.urdf_files import arm, link, robot

import kinetree as kt
from kinetree.errors import KinetreeError, LoadError, ModelWarning
from kinetree.loaders import load, loads, read

NOISY = arm("continuous", "", "<gazebo/>\n" * 3, "<sensor name='s'/>\n")


@pytest.fixture
def noisy(tmp_path):
    path = tmp_path / "noisy.urdf"
    path.write_text(NOISY)
    return path


def test_load_gives_a_model(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(arm())
    assert load(path).joint_names == ("j",)
    assert load(str(path), floating_base=True).joint_names == ("root_joint", "j")
    assert load(path, lump=False) == load(path)


def test_notices_that_change_nothing_are_one_line_of_the_log(noisy, capsys, recwarn):
    model = load(noisy)
    assert not recwarn.list
    assert capsys.readouterr().err == (
        f"{noisy}: 4 notices about what does not change its motion: print(model.report)\n"
    )
    assert str(model.report) == (
        f"{noisy}:8: <sensor name='s'>: kinetree does not use it\n"
        f"{noisy}:5: <gazebo>: settings of a simulator (and 2 more of this kind)"
    )
    assert model.report == read(noisy).notices
    assert str(loads(arm()).report) == "nothing was ignored, and nothing looks wrong"


def test_what_changes_motion_is_one_warning(noisy, capsys):
    text = noisy.read_text().replace("</robot>", "<gazebo><static>true</static></gazebo></robot>")
    noisy.write_text(text)
    with pytest.warns(ModelWarning) as caught:
        load(noisy)
    [warning] = caught
    assert warning.filename == __file__
    first, *rest, last = str(warning.message).splitlines()
    assert first.endswith("elements that are ignored or look wrong:")
    assert any("<gazebo>: settings of a simulator: static" in line for line in rest)
    assert last == "  and 4 notices that do not change how it moves: model.report"
    assert capsys.readouterr().err == ""


def test_a_long_list_is_cut():
    report = loads(robot(link("a"), *(f"<x{i}/>" for i in range(30)))).report
    assert len(report) == 30
    assert len(str(report).splitlines()) == 11
    assert "and 20 other kinds" in str(report)


def test_read_gives_the_notices_as_data(noisy):
    loaded = read(noisy)
    assert loaded.path == str(noisy)
    assert [(n.line, n.what) for n in loaded.notices] == [
        (8, "<sensor name='s'>"), (5, "<gazebo>"), (6, "<gazebo>"), (7, "<gazebo>"),
    ]  # fmt: skip
    assert [n.effect for n in loaded.notices] == ["control", "setting", "setting", "setting"]
    assert loaded.model.nv == 1


def test_strict_makes_them_an_error(noisy):
    with pytest.raises(LoadError, match="strict=True, and 4 notices: elements") as caught:
        load(noisy, strict=True)
    assert f"{noisy}:5: <gazebo>" in str(caught.value)
    assert read(noisy).notices


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".URDF", ".txt", ""])
def test_urdf_is_known_by_its_root_element(tmp_path, suffix):
    path = tmp_path / f"arm{suffix}"
    path.write_text(arm())
    assert load(path).nv == 1


def test_json_is_read(tmp_path):
    path = tmp_path / "arm.json"
    model = loads(arm())
    path.write_text(json.dumps(model.to_dict()))
    assert load(path) == model
    assert loads(path.read_text()) == model
    assert loads(path.read_text(), format="json") == model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "m.json:1: this is not JSON"),
        ("[]", "expected a dictionary with format"),
        ('{"format": "kinetree model 1"}', "have no"),
        ("[" * 100_000, "this is not JSON"),
        ('{"a": NaN}', "m.json"),
    ],
)
def test_json_that_is_not_a_model(tmp_path, text, message):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(LoadError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "<html/>",
            "<text>: unknown format: its root element is <html>, and the suffix is not one",
        ),
        ("", "<text>: unknown format: it is not XML"),
        ("<robot", "unknown format"),
    ],
)
def test_unknown_formats(text, message):
    with pytest.raises(LoadError, match=message):
        loads(text)


def test_format_by_name():
    assert loads(arm(), "urdf").nv == 1
    known = "urdf, mjcf, sdf, usd, toml, dh"
    with pytest.raises(LoadError, match=f"unknown format 'step'; known: {known}"):
        loads(arm(), "step")
    with pytest.raises(LoadError, match="unknown format 'URDF'; did you mean 'urdf'"):
        loads(arm(), "URDF")


def test_a_file_is_not_text():
    for name in ("robot.urdf", "models/robot.xml"):
        with pytest.raises(LoadError, match=f"'{name}' is the name of a file, not its text; load"):
            loads(name)


def test_bytes_and_encodings():
    text = "<?xml version='1.0' encoding='utf-16'?>" + arm()
    assert loads(text.encode("utf-16")).nv == 1
    with pytest.raises(LoadError, match="not well-formed"):
        loads(arm().replace("'tip'", "'\udc80'"), "urdf")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/nowhere/robot.urdf", "there is no such file; nor is there a folder '/nowhere'"),
        ("panda", r"no such file; for a robot of the package: kinetree.samples.load\('pan"),
        (
            f"{Path(__file__).parent}/tset_load.py",
            "there is no such file; did you mean 'test_load.py'",
        ),
        ("<robot name='a'/>", "there is no such file; loads\\(text\\) takes the text itself"),
        (os.curdir, "this is a folder; load needs a robot file"),
        ("/dev/zero", "this is not a regular file"),
        ("a\0b", "the file cannot be read"),
        ("x" * 10_000, "the file cannot be read"),
        (None, "load needs the path of a file, got NoneType; loads takes text"),
        (3, "load needs the path of a file, got int"),
    ],
)
def test_what_is_not_a_file(path, message):
    with pytest.raises(LoadError, match=message):
        load(path)


def test_loads_needs_text():
    with pytest.raises(LoadError, match="loads needs a string or bytes, got Model"):
        loads(loads(arm()))


def test_huge_files_are_not_even_opened(tmp_path):
    path = tmp_path / "huge.urdf"
    with open(path, "wb") as file:
        file.truncate(10**12)
    with pytest.raises(LoadError, match="the file has 1000000000000 bytes; kinetree reads at most"):
        load(path)


def test_a_file_without_permission(tmp_path):
    path = tmp_path / "closed.urdf"
    path.write_text(arm())
    path.chmod(0)
    if os.access(path, os.R_OK):
        assert load(path).nv == 1  # the superuser reads everything
    else:
        with pytest.raises(LoadError, match=r"cannot be read: .*Permission"):
            load(path)


def test_errors_of_the_model_name_the_file():
    with pytest.raises(LoadError, match=r"^<text>: "):
        loads(arm("continuous", "", "<kinetree:coupling name='j' joint='j' coefficients='0'/>"))


def test_the_error_is_ours_and_a_value_error():
    assert issubclass(LoadError, KinetreeError)
    assert issubclass(LoadError, ValueError)


def test_warnings_of_others_pass(monkeypatch):
    import warnings

    from kinetree.loaders import urdf

    def reader(*arguments):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return read_urdf(*arguments)

    read_urdf = urdf.read_urdf
    monkeypatch.setattr(urdf, "read_urdf", reader)
    with pytest.warns(DeprecationWarning, match="old"):
        loads(arm())


def test_a_loaded_model_computes():
    model = loads(arm("continuous", "<axis xyz='0 1 0'/>"))
    assert kt.mass_matrix(model, [0.3]).shape == (1, 1)
