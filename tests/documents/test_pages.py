"""What the documents show must run: README, pages, examples, demo."""

import linecache
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from support.pytorch_here import is_left_out
from support.shown_output import assert_same_output

import kinetree as kt

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ["README.md", "CONTRIBUTING.md"] + [
    page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "docs").rglob("*.md"))
]


def blocks_of(page):
    """Code on a page that can run here, each block with the output that follows it, or ""."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", text, re.S)
    return [(code, shown) for code, shown in found if not is_left_out(code)]


PAGES = [page for page in WRITTEN if blocks_of(page)]
EXAMPLES = sorted(p.name for p in (ROOT / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_code_on_the_page_runs(page, capsys):
    blocks, names, printed = blocks_of(page), {"__name__": "__main__"}, ""
    for k, (code, shown) in enumerate(blocks):
        file = f"<{page}, block {k}>"
        linecache.cache[file] = (len(code), None, code.splitlines(True), file)  # procedures read it
        exec(compile(code, file, "exec"), names)
        out = capsys.readouterr().out
        printed += out
        if shown:
            assert_same_output(out, shown, numbers=page != "docs/worlds.md")  # corners share loads
    if page == "docs/tour.md":  # says what an error says
        promised = re.search(r"print\(error\) +# (.*)", "".join(c for c, _ in blocks)).group(1)
        assert promised in printed


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert capsys.readouterr().out


def test_demo_runs_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    sys.modules.pop("demo", None)
    import demo

    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    monkeypatch.setenv("DISPLAY", ":0")
    demo.main(tmp_path / "out", seconds=5.0)
    out = capsys.readouterr().out
    assert float(out.split("by at most ")[1].split()[0]) < 1  # mm
    page = (tmp_path / "out" / "demo.html").read_text(encoding="utf-8")
    assert page.count("srcdoc=") == page.count("data:image/png;base64,") == 1
    assert "http" not in page.replace("http://www.w3.org", "")  # offline
    assert opened == [(tmp_path / "out" / "demo.html").as_uri()]


def test_the_throw_through_contact_runs(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import throw_through_contact as throw

    monkeypatch.setattr(throw, "STAGES", (0.2,))
    costs = throw.main(["--seconds", "0.1"])
    assert capsys.readouterr().out.count("mm from the target") == 2
    assert all(0 < c < 10 for c in costs.values())
    forces = np.tile([-1.0, 0.5], (throw.STEPS, 2, 1))  # away from the puck
    np.testing.assert_allclose(throw.cost(forces)[0], throw.rigid_cost(forces), rtol=1e-9)


@pytest.mark.parametrize("page", WRITTEN)
def test_every_local_link_leads_somewhere(page):
    for target, anchor in links(page):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), f"{page} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page} links to {target}#{anchor}"


def links(page):
    """Pairs of a relative path and an anchor, code left out."""
    text = re.sub(
        r"^```.*?^```|`[^`\n]+`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S
    )
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "://" not in target:
            yield target, anchor


def anchors(path):
    """What headings can be linked by."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", [p for p in WRITTEN if p != "docs/book.md"])
def test_every_name_on_the_page_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"\bkt((?:\.[a-z_A-Z]\w*)+)", text))):
        thing = kt
        for part in name.strip(".").split("."):
            thing = getattr(thing, part)


def test_the_page_on_joints_lists_every_joint_with_its_sizes():
    text = (ROOT / "docs/joints.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| `(kt\.joints\.)?(\w+)\([^`]*` \| ([^|]*?) \|", text, re.M)
    rows = {name: sizes for _, name, sizes in found}
    joints = [kind for kind in kt.joints.KINDS if kind is not kt.joints.PrescribedInstant]
    assert set(rows) == {kind.__name__ for kind in joints}
    assert {name for place, name, _ in found if not place} == {*rows} & {*kt.__all__}
    for joint in joints:
        if isinstance(vars(joint).get("nq"), int):
            assert rows[joint.__name__] == f"{joint.nq} / {joint.nv}"
