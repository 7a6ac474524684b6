"""``make release`` and the workflows: versions agree, the package's page holds, targets exist."""

import re
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

import kinetree

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        import release
    finally:
        sys.path.remove(str(ROOT / ".ci"))
    return release


def test_versions_agree(tool, tmp_path):
    assert tool.agreed_version() == kinetree.__version__
    (tmp_path / "src" / "kinetree").mkdir(parents=True)
    (tmp_path / "src" / "kinetree" / "__init__.py").write_text('__version__ = "0.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 0.1.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0 (unreleased)\n")
    with pytest.raises(SystemExit, match=r"versions differ: .*, 0\.1\.0 in CITATION\.cff, "):
        tool.agreed_version(tmp_path)


def test_the_page_of_the_package_has_absolute_links_or_none(tool):
    text = (
        '<p>\n<img src="docs/a.png" alt="a">\n</p>\n[`kt.World`](docs/w.md), [x](https://x.org/) '
        "[y](#install)\n```\n[kept](docs/w.md)\n```\n"
    )
    at = "https://example.org/kinetree"
    assert tool.page(text, at, "0.1.0") == (
        f'<p>\n<img src="{at}/raw/v0.1.0/docs/a.png" alt="a">\n</p>\n'
        f"[`kt.World`]({at}/blob/v0.1.0/docs/w.md), [x](https://x.org/) "
        "[y](#install)\n```\n[kept](docs/w.md)\n```\n"
    )
    assert tool.page(text, "", "0.1.0") == (
        "`kt.World`, [x](https://x.org/) [y](#install)\n```\n[kept](docs/w.md)\n```\n"
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for url in ("", at):
        outside = "".join(tool._FENCES.split(tool.page(readme, url, "0.1.0"))[::2])
        assert not tool._LINK.search(outside)
        assert not tool._IMAGE.search(outside)


def test_where_the_repository_is_hosted_is_one_setting(tool):
    assert tool.setting('[tool.kinetree]\n# why\nrepository = "https://x.org"\n') == "https://x.org"
    assert tool.setting((ROOT / "pyproject.toml").read_text(encoding="utf-8")) == ""
    table = tomllib.loads(tool.project_urls("https://x.org", "1.0"))["project"]["urls"]
    assert table["Changelog"] == "https://x.org/blob/v1.0/CHANGELOG.md"


def test_what_is_wrong_with_a_wheel_is_named(tool, tmp_path):
    def wheel(**files):
        path = tmp_path / "kinetree-0.1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return path

    about = "kinetree-0.1.0.dist-info/METADATA"
    good = {"kinetree/a.py": "", about: "Name: kinetree\nVersion: 0.1.0\n\n[x](https://x.org)"}
    assert tool.wrong(wheel(**good), "0.1.0", False) == []
    bad = {**good, "tests/b.py": "", about: "Name: kinetree\nVersion: 0.2.0\n\n[x](docs/x.md)"}
    found = tool.wrong(wheel(**bad), "0.1.0", True)
    assert [problem.partition(": ")[2] for problem in found] == [
        "it holds tests/b.py",
        "its metadata do not name version 0.1.0",
        "its project URLs are not those of the setting",
        "its page links to docs/x.md",
    ]


def test_the_site_is_archived_by_version(tool, tmp_path):
    with pytest.raises(SystemExit, match="`make docs` builds it"):
        tool.site_archive("0.1.0", tmp_path)
    site = tmp_path / "out" / "site"
    (site / "theory").mkdir(parents=True)
    (site / "index.html").write_text("home")
    (site / "theory" / "rnea.html").write_text("rnea")
    first = tool.site_archive("0.1.0", tmp_path)
    data = first.read_bytes()
    assert first.name == "kinetree-0.1.0-docs.zip"
    with zipfile.ZipFile(first) as archive:
        assert archive.namelist() == ["0.1.0/index.html", "0.1.0/theory/rnea.html"]
        assert archive.read("0.1.0/theory/rnea.html") == b"rnea"
    assert tool.site_archive("0.1.0", tmp_path).read_bytes() == data  # the same bytes every time


# --- workflows ---------------------------------------------------------------------------------


def steps(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        yield from job["steps"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_only_call_make(path):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    called = [step["run"] for step in steps(path) if "run" in step]
    assert called
    for command in called:
        filled = re.sub(r"\$\{\{.*?\}\}", "x", command)
        match = re.fullmatch(r"(?:sudo )?make (\w+)(?: [A-Z]+=\S+)*", filled)
        assert match, command
        assert match[1] in targets
    assert all(step["uses"].startswith("actions/") for step in steps(path) if "uses" in step)


def test_systems_and_pythons_are_those_that_are_declared():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    named = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert project["requires-python"] == f">={named[0]}"
    test = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    matrix = test["jobs"]["versions"]["strategy"]["matrix"]
    assert matrix["python"] == [named[0], named[-1]]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
