"""Whatever a name holds, no output of ours takes it for something else than text."""

import json
import random
import re
import subprocess
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from hostile.strange import NAMES, random_name, robot
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chromium import Browser
from typer.testing import CliRunner

import kinetree as kt
from kinetree import viewer
from kinetree.cli.app import app
from kinetree.codegen.export import _comment
from kinetree.simulation.results.plotting import words
from kinetree.spelling import printable

mpl.use("Agg")
import matplotlib.pyplot as plt

THOROUGH = settings.default.max_examples > 1000
# Of what drives terminals, only the end of a line is ours.
CONTROL = re.compile(r"[^\n\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]|[\u202a-\u202e\u2028\u2029]")


@pytest.fixture(scope="module")
def model():
    return robot()


@pytest.fixture(scope="module")
def small():
    """With the names that hurt pages, plots and terminals; large models take long to compile."""
    return robot([NAMES[k] for k in (0, 1, 2, 4, 5, 6, 12, 14, 17, 19)])


@pytest.fixture(scope="module")
def motion(small):
    model = small
    t = np.linspace(0, 1, 5)
    q = np.outer(np.sin(t), np.ones(model.nq))
    zero = np.zeros(5)
    return kt.Trajectory(model, t, q, np.cos(q), 0 * q + 1, zero, zero, zero)


# --- C and NumPy ----------------------------------------------------------------------------------


def test_c_compiles_without_a_warning(model, tmp_path):
    kt.export_c(model, ["potential_energy"], tmp_path / "c", name="strange")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wtrigraphs", "-fsyntax-only"]
    for file in ("strange.c", "strange_test.c"):
        done = subprocess.run(["cc", *flags, file], cwd=tmp_path / "c", capture_output=True)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
    text = (tmp_path / "c" / "strange.h").read_text(encoding="ascii")
    assert "int hurt;\n" not in text
    assert subprocess.run(["make", "-n"], cwd=tmp_path / "c", capture_output=True).returncode == 0


def test_the_numpy_listing_runs(model, rng):
    function = kt.to_numpy(kt.potential_energy, model)
    q = rng.standard_normal(model.nq)
    assert function(q) == pytest.approx(float(kt.potential_energy(model, q)))


@settings(max_examples=3000 if THOROUGH else 50, database=None)
@given(st.integers(0, 2**63))
def test_a_comment_in_c_holds_any_name(seed):
    rng = random.Random(seed)
    text = _comment([random_name(rng) for _ in range(3)])
    inside = text.removeprefix("/*").removesuffix("*/")
    assert text.startswith("/*")
    assert text.endswith("*/")
    spliced = inside.replace("??/", "\\").replace("\\\n", "")
    assert not re.search(r"\*/|/\*|\?\?", spliced)
    assert text.isascii()


# --- terminal -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("robots") / "robot.json"
    path.write_text(json.dumps(small.to_dict()), encoding="ascii")
    return str(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["check"],
        ["eval", "gravity_force", "--table"],
        ["simulate", "--duration", "0.002"],
        ["eval", "pose", "--of", "\x1b[31mnone", "--table"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_no_name_drives_the_terminal(file, arguments, monkeypatch):
    monkeypatch.setenv("COLUMNS", "5000")
    if arguments[0] == "eval":
        arguments = [*arguments[:2], file, *arguments[2:]]
    else:
        arguments = [arguments[0], file, *arguments[1:]]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code in (0, 1), done.output
    assert not isinstance(done.exception, (UnicodeError, ValueError))
    assert CONTROL.search(done.output) is None
    if arguments[0] in ("info", "simulate"):
        assert r"\x1b[31mred" in done.output
        assert r"two\nlines" in done.output
        assert "[red]markup[/red]" in done.output


def test_json_has_the_names_as_they_are_and_no_control_characters(file, small):
    done = CliRunner().invoke(app, ["info", file, "--json"])
    assert CONTROL.search(done.output) is None
    found = json.loads(done.output)
    assert [body["name"] for body in found["bodies"]] == list(small.body_names[1:])


# --- pictures -------------------------------------------------------------------------------------


def test_plots_write_names_as_they_are(motion):
    model = motion.model
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figures = [
            motion.plot(),
            kt.plot.phase(motion, [model.joint_names[5]]),
            kt.plot.tree(model),
            kt.plot.sparsity(model),
        ]
        for figure in figures:
            figure.draw_without_rendering()
            plt.close(figure)
    legend = {t.get_text() for axes in figures[0].axes for t in _legend(axes)}
    assert any(r"\$\undefinedcmd\$" in text for text in legend)


def _legend(axes):
    return axes.get_legend().get_texts() if axes.get_legend() else ()


@settings(max_examples=1000 if THOROUGH else 30, database=None)
@given(st.integers(0, 2**63))
def test_words_are_no_formula(seed):
    name = random_name(random.Random(seed))
    text = words(name)
    assert not mpl.cbook.is_math_text(text)
    assert text.strip(" ").replace(r"\$", "$") == printable(name).strip(" ")
    assert text.encode()


def test_deep_trees_are_drawn():
    names = [f"b{k}" for k in range(1200)]
    builder = kt.ModelBuilder("deep")
    for k, name in enumerate(names):
        builder.body(name, on=names[k - 1] if k else None, joint=kt.Revolute("y"))
    from kinetree.plot.mechanisms import _places

    at = _places(builder.build())
    assert at[-1].tolist() == [1200, 0]


# --- files of motions -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".nc"])
def test_a_name_that_no_table_holds_is_named(motion, tmp_path, suffix):
    with pytest.raises(kt.ModelError, match=r"'4 \\ud800 .* half a surrogate pair, .* as \.npz"):
        motion.save(tmp_path / f"motion{suffix}")
    assert not list(tmp_path.iterdir())
    found = kt.Trajectory.load(motion.save(tmp_path / "motion.npz"))
    assert found.model == motion.model


# --- pages ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    found = Browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost", size=(320, 240))
    yield found
    found.close()


def unhurt(browser):
    """Nothing ran, nothing was fetched from elsewhere, and no element came out of a name."""
    assert browser.run("window.hurt === undefined")
    assert (
        browser.run("document.querySelectorAll('iframe, img[src=x], a[href^=javascript]').length")
        == 0
    )
    outside = [
        r for r in browser.requests if not r.startswith(("file:", "http://localhost", "ws:"))
    ]
    assert [r for r in outside if not r.startswith(("data:", "blob:"))] == []


def test_the_page_in_one_file_shows_names_as_text(motion, tmp_path, browser):
    path = tmp_path / "page.html"
    with pytest.warns(kt.ModelWarning, match=r"is not drawn: there is no file"):
        viewer.save_html(motion, path)
    assert CONTROL.search(path.read_text(encoding="utf-8")) is None
    browser.open(path.as_uri())
    browser.wait("window.kinetree")
    assert browser.run("document.title") == printable(motion.model.name)
    notices = browser.run("document.getElementById('notices').textContent")
    for name in NAMES[:3]:
        assert f"mesh {name} of" in notices
    unhurt(browser)
    assert not browser.errors


def test_the_live_page_shows_names_as_text(small, browser):
    with pytest.warns(kt.ModelWarning, match=r"is not drawn: there is no file"):
        shown = kt.view(small, open=False, shadows=False)
    with shown:
        browser.open(shown.url)
        ready = "document.body.innerText.includes('Notices')"
        browser.wait(f"document.querySelector('canvas') && {ready}")
        titles = "[...document.querySelectorAll('p,span,div')]"
        script = f"{titles}.find(e => e.textContent === 'Notices ({small.body_count})').click()"
        browser.run(script)
        browser.wait("document.body.textContent.includes('window.hurt')")
        browser.wait(f"document.body.textContent.includes({json.dumps('mesh ' + NAMES[1])})")
        browser.wait("document.body.textContent.includes('half a pair')")
        unhurt(browser)
        assert not browser.errors
        assert "<img" not in shown._repr_html_().replace(str(shown.url), "")
