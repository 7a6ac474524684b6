"""``.ci/install.py``: uv has the settings of pip, and pip installs what uv cannot."""

import sys
from types import SimpleNamespace

import pytest
from support.ci_tools import of_ci

LISTED = """\
:env:.cert='/etc/certificates.crt'
:env:.default-timeout='180'
:env:.find-links='/wheels'
global.extra-index-url='file:///one file:///two'
global.find-links='/other'
global.index-url='https://all.example/simple'
install.index-url='https://its.example/simple'
install.no-compile='true'
"""


@pytest.fixture(scope="module")
def tool():
    return of_ci("install")


def test_settings_of_the_environment_come_first_then_those_of_the_command(tool):
    found = tool.settings(LISTED)
    assert found["find-links"] == "/wheels"
    assert found["index-url"] == "https://its.example/simple"
    assert tool.settings("") == {}


def test_uv_has_the_settings_of_pip(tool):
    options, variables = tool.for_uv(tool.settings(LISTED))
    pairs = [*zip(options[::2], options[1::2], strict=True)]
    assert {*pairs} == {
        ("--index-strategy", "unsafe-best-match"),
        ("--index-url", "https://its.example/simple"),
        ("--extra-index-url", "file:///one"),
        ("--extra-index-url", "file:///two"),
        ("--find-links", "/wheels"),
    }
    assert variables == {"SSL_CERT_FILE": "/etc/certificates.crt", "UV_HTTP_TIMEOUT": "180"}
    assert "--no-index" in tool.for_uv({"no-index": "1"})[0]
    assert "--no-index" not in tool.for_uv({"no-index": "0"})[0]


@pytest.mark.parametrize("key", ["constraint", "proxy", "client-cert", "pre", "something-new"])
def test_a_setting_that_uv_has_no_equal_of_leaves_it_to_pip(tool, key):
    assert tool.for_uv({key: "x"}) is None


@pytest.mark.parametrize(
    ("failing", "by"),
    [((), "uv"), (("uv pip",), "pip"), (("--quiet uv",), "pip"), (("config",), "pip"),
     (("uv pip", "--editable"), "nobody")],
)  # fmt: skip
def test_pip_installs_what_uv_cannot(tool, failing, by):
    ran = []

    def run(command, **_):
        text = " ".join(command).replace(sys.executable, "python")
        ran.append(text)
        return SimpleNamespace(returncode=int(any(f in text for f in failing)), stdout="")

    assert tool.install(".[test]", run) == (by == "nobody")
    last = "python -m uv pip install" if by == "uv" else "python -m pip install"
    assert ran[-1].startswith(last)
    assert "--editable .[test]" in ran[-1]
