"""Packages that are not installed: one class of errors, which names the extra that brings them."""

import sys

import pytest

import kinetree as kt

PENDULUM = kt.samples.pendulum()
MJCF = '<mujoco><worldbody><body><geom size="1"/></body></worldbody></mujoco>'


def file(path, text):
    path.write_text(text)
    return path


USES = {
    "sympy": ("symbolic", lambda path: kt.equations_of_motion(PENDULUM)),
    "pinocchio": ("pinocchio", lambda path: kt.interop.pinocchio.to_model(PENDULUM)),
    "mujoco": ("mjcf", lambda path: kt.load(file(path / "a.xml", MJCF))),
    "matplotlib": ("plot", lambda path: kt.plot.tree(PENDULUM)),
    "viser": ("view", lambda path: kt.view(PENDULUM, open=False)),
}


@pytest.mark.parametrize("package", USES)
def test_a_missing_package_is_one_kind_of_error(package, tmp_path, monkeypatch):
    extra, use = USES[package]
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        kt.errors.MissingPackageError, match=rf'pip install "kinetree\[{extra}\]"'
    ) as caught:
        use(tmp_path)
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, kt.KinetreeError)
