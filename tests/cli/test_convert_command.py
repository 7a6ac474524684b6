"""``kinetree convert`` and ``kinetree samples``."""

import json

import numpy as np
import pytest
from support.command import invoke

import kinetree as kt
from kinetree.loaders import read


@pytest.mark.parametrize("suffix", ["urdf", "toml", "json"])
def test_the_dynamics_survives(tmp_path, suffix):
    path = tmp_path / f"pendulum.{suffix}"
    result = invoke("convert", "double_pendulum", str(path))
    assert result.exit_code == 0, result.output
    assert f"wrote {path}: 2 bodies, nv = 2" in result.stderr
    model, q = kt.samples.double_pendulum(), np.array([0.3, 0.4])
    H = kt.mass_matrix(read(path).model, q)
    assert np.allclose(H, kt.mass_matrix(model, q), rtol=1e-12)


def test_files_are_replaced_only_on_request(tmp_path):
    path = tmp_path / "p.urdf"
    assert invoke("samples", "write", "pendulum", str(path)).exit_code == 0
    again = invoke("convert", "pendulum", str(path))
    assert again.exit_code == 2
    assert f"{path} exists; --force replaces it" in again.stderr
    assert invoke("convert", "pendulum", str(path), "--force").exit_code == 0


def test_what_gets_lost_is_listed_and_strict_writes_nothing(tmp_path):
    source, target = tmp_path / "r.urdf", tmp_path / "r.toml"
    source.write_text('<robot name="r"><link name="a"/><gazebo/></robot>')
    refused = invoke("convert", str(source), str(target), "--strict")
    assert refused.exit_code == 1
    assert "nothing was written, because of 1 note about" in refused.stderr
    assert not target.exists()
    done = invoke("convert", str(source), str(target))
    assert done.exit_code == 0
    assert "<gazebo>" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["convert", "pendulum", "nowhere/p.urdf"], 2, "there is no folder 'nowhere'"),
        (["convert", "pendulum", "p.docx"], 1, "cannot write 'p.docx'"),
        (["convert", "pendulm", "p.urdf"], 2, "did you mean 'pendulum'"),
        (["samples", "write", "pandda", "p.urdf"], 2, "no sample 'pandda'; did you mean 'panda'"),
        (["samples", "write", "xyzzy", "p.urdf"], 2, "no sample 'xyzzy'; there are pendulum"),
    ],
)
def test_mistakes_are_explained(tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_all_samples_are_listed():
    output = invoke("samples").stdout
    rows = json.loads(invoke("samples", "--json").stdout)
    assert [row["name"] for row in rows] == list(kt.samples.names())
    for row in rows:
        model = getattr(kt.samples, row["name"])()
        assert (row["nq"], row["nv"], row["loops"]) == (model.nq, model.nv, len(model.loops))
        assert row["name"] in output
        assert row["description"]
