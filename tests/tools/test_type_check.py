"""``.ci/type_check.py``: the type checker runs again where anything that it reads has changed."""

import sys

import pytest
from support.ci_tools import of_ci


@pytest.fixture(scope="module")
def checker():
    return of_ci("type_check")


@pytest.fixture
def clone(tmp_path):
    (tmp_path / "src" / "kinetree").mkdir(parents=True)
    (tmp_path / "src" / "kinetree" / "a.py").write_text("x = 1\n")
    (tmp_path / "src" / "kinetree" / "b.pyi").write_text("x: int\n")
    (tmp_path / "pyproject.toml").write_text("[tool.basedpyright]\n")
    (tmp_path / "packages" / "numpy-2.0.0.dist-info").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        (lambda clone: (clone / "src/kinetree/a.py").write_text("x = 2\n"), True),
        (lambda clone: (clone / "src/kinetree/a.py").rename(clone / "src/kinetree/c.py"), True),
        (lambda clone: (clone / "src/kinetree/b.pyi").unlink(), True),
        (lambda clone: (clone / "src/kinetree/d.py").touch(), True),
        (lambda clone: (clone / "pyproject.toml").write_text("[tool]\n"), True),
        (lambda clone: (clone / "packages/jax-0.5.0.dist-info").mkdir(), True),
        (lambda clone: (clone / "src/kinetree/a.py").touch(), False),
        (lambda clone: (clone / "src/kinetree/a.pyc").write_bytes(b"0"), False),
    ],
)
def test_the_digest_changes_with_what_the_checker_reads(checker, clone, change, is_new):
    before = checker.digest(clone, clone / "packages")
    change(clone)
    assert (checker.digest(clone, clone / "packages") != before) == is_new


def test_only_a_check_that_found_nothing_is_remembered(checker, tmp_path, capfd):
    def command(status):
        return [sys.executable, "-S", "-c", f"print('ran'); raise SystemExit({status})"]

    checked = tmp_path / ".types-checked"
    assert checker.check(command(1), "one", checked) == 1
    assert checker.check(command(0), "one", checked) == 0
    assert capfd.readouterr().out.split() == ["ran", "ran"]
    assert checker.check(command(1), "one", checked) == 0
    assert "nothing has changed" in capfd.readouterr().out
    assert checker.check(command(1), "two", checked) == 1
