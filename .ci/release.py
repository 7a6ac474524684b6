"""Build a release and try it as a stranger would: ``make release``.

An sdist and a wheel go to ``dist``. Their metadata and the page that a package index shows are
checked; both are installed into fresh environments of every Python here, where tests/smoke.py runs;
the examples run with the newest one, from a folder outside of the clone.

    python .ci/release.py                             all Pythons
    python .ci/release.py --only ends                 the oldest and the newest
    python .ci/release.py --build-only                the files and their checks alone
    python .ci/release.py --site                      an archive of out/site, by version

Where the repository is hosted is one setting, ``repository`` in ``[tool.kinetree]`` of
pyproject.toml, or ``--url``: project URLs, and the links and pictures of README.md on the package's
page, are made of it. Without it the page has neither links nor pictures, which is said.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pythons
from pythons import ROOT, fresh_environment, in_environment, pip, smoke

FOLDER = ROOT / "out" / "release"
DIST = ROOT / "dist"
TOOLS = ("hatchling", "twine", "readme_renderer[md]")
LARGEST = {".whl": 3e6, ".gz": 4e6}  # [bytes]: what is more has swallowed something
EXTRAS = ("cli", "mjcf", "pinocchio", "plot", "qp", "view")  # of the examples
ROBOTS = "example-robot-data"  # one of which walks
LEFT_OUT = ("ppo.py", "learn_on_a_cpu.py", "learn_to_walk.py", "learn_to_grasp.py",
            "learn_on_many_machines.py")  # fmt: skip
"""Examples that need PyTorch, minutes, or a cluster."""


def main():
    """Run what was requested; the exit status says whether all of it passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="all", help="all, ends, or a version such as 3.12")
    parser.add_argument("--url", default="", help="of the repository, such as that of its web page")
    parser.add_argument("--build-only", action="store_true", help="install nothing")
    parser.add_argument("--site", action="store_true", help="archive out/site, as `make docs` does")
    options = parser.parse_args()
    if options.site:
        print(f"ready: {site_archive(agreed_version()).relative_to(ROOT)}")
        return
    found = pythons.installed_pythons()
    version = agreed_version()
    url = options.url or setting((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    files = build(stage(version, url), next(reversed(found.values())))
    problems = [p for file in files for p in wrong(file, version, bool(url))]
    if problems:
        sys.exit("\n".join(problems))
    if not url:
        print("no repository is set: the page has neither links, pictures nor project URLs")
    if not options.build_only:
        try_out(files, found, options.only)
    print("ready: " + ", ".join(str(file.relative_to(ROOT)) for file in files))


# --- what a release consists of ------------------------------------------------------------------


def agreed_version(root=ROOT) -> str:
    """The version of the package, which the changelog and CITATION.cff must name, too."""
    places = {
        "src/kinetree/__init__.py": r'^__version__ = "(.+)"$',
        "CITATION.cff": r"^version: (.+)$",
        "CHANGELOG.md": r"^## (\S+)",
    }
    found = {}
    for name, pattern in places.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.M)
        found[name] = match.group(1) if match else "none"
    if len(set(found.values())) > 1:
        sys.exit("versions differ: " + ", ".join(f"{v} in {name}" for name, v in found.items()))
    return found["CITATION.cff"]


def setting(text) -> str:
    """Address of the repository in pyproject.toml; empty where there is none yet."""
    match = re.search(r'^\[tool\.kinetree\]\n(?:.*\n)*?repository = "(.*)"', text, re.M)
    return match.group(1) if match else ""


def stage(version, url):
    """A copy of the files that git knows, with the package's own page and project URLs."""
    tree = FOLDER / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    readme, project = tree / "README.md", tree / "pyproject.toml"
    readme.write_text(page(readme.read_text(encoding="utf-8"), url, version), encoding="utf-8")
    if url:
        text = project.read_text(encoding="utf-8")
        project.write_text(f"{text}\n{project_urls(url, version)}", encoding="utf-8")
    return tree


_FENCES = re.compile(r"(^```.*?^```)", re.M | re.S)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)\s]+)\)")
_IMAGE = re.compile(r'<img src="(?!\w+:)([^"]+)"')
_IMAGES = re.compile(r"<p>\s*(?:<img [^>]*>\s*)+(?:</p>)?\n?")


def page(text, url, version) -> str:
    """README.md for a package index, where relative links lead nowhere."""
    pieces = _FENCES.split(text)
    if url:
        pieces[::2] = [
            _IMAGE.sub(
                rf'<img src="{url}/raw/v{version}/\1"',
                _LINK.sub(rf"[\1]({url}/blob/v{version}/\2)", piece),
            )
            for piece in pieces[::2]
        ]
    else:
        pieces[::2] = [_LINK.sub(r"\1", _IMAGES.sub("", piece)) for piece in pieces[::2]]
    return "".join(pieces)


def project_urls(url, version) -> str:
    """The table of pyproject.toml."""
    at = f"{url}/blob/v{version}"
    return (
        f'[project.urls]\nSource = "{url}"\nDocumentation = "{at}/docs/index.md"\n'
        f'Changelog = "{at}/CHANGELOG.md"\nIssues = "{url}/issues"\n'
    )


def build(tree, python):
    """The files, as twine finds them in order."""
    tools = fresh_environment(python, FOLDER / "tools")
    subprocess.run([*pip(tools), "install", "--quiet", *TOOLS], check=True)
    shutil.rmtree(DIST, ignore_errors=True)
    when = ["git", "log", "-1", "--format=%ct"]
    epoch = subprocess.run(when, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    command = [in_environment(tools), "-m", "hatchling", "build", "-d", DIST]
    settings = {**os.environ, "SOURCE_DATE_EPOCH": epoch.strip()}  # the same bytes every time
    subprocess.run(command, cwd=tree, check=True, env=settings)
    files = sorted(DIST.iterdir())
    subprocess.run([in_environment(tools), "-m", "twine", "check", "--strict", *files], check=True)
    return files


def wrong(file, version, has_urls) -> list[str]:
    """What is wrong with an sdist or a wheel, a sentence each."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            about = archive.read(f"kinetree-{version}.dist-info/METADATA").decode()
        strangers = [n for n in names if not n.startswith(("kinetree/", "kinetree-"))]
    else:
        with tarfile.open(file) as archive:
            names = archive.getnames()
            about = archive.extractfile(f"kinetree-{version}/PKG-INFO").read().decode()
        strangers = [
            n for n in names if re.match(r"[^/]+/(docs|out|benchmarks|\.(?!gitignore))", n)
        ]
    head, _, words = about.partition("\n\n")
    found = [f"it holds {n}" for n in strangers[:5]]
    found += [f"it holds {n}" for n in names if "__pycache__" in n][:5]
    if (size := file.stat().st_size) > LARGEST[file.suffix]:
        found.append(f"it has {size / 1e6:.1f} MB, more than {LARGEST[file.suffix] / 1e6:g}")
    if f"Version: {version}" not in head.splitlines():
        found.append(f"its metadata do not name version {version}")
    if ("Project-URL:" in head) != has_urls:
        found.append("its project URLs are not those of the setting")
    outside = "".join(_FENCES.split(words)[::2])
    found += [f"its page links to {m[1]}" for m in _LINK.findall(outside)]
    found += [f"its page shows {name}" for name in _IMAGE.findall(outside)]
    return [f"{file.name}: {problem}" for problem in found]


def site_archive(version, root=ROOT):
    """The documentation site as a zip, in a folder named after the version; with one date."""
    site = root / "out" / "site"
    if not (site / "index.html").is_file():
        sys.exit("there is no site in out/site: `make docs` builds it")
    target = root / "out" / f"kinetree-{version}-docs.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(site.rglob("*")):
            if file.is_file():
                name = f"{version}/{file.relative_to(site).as_posix()}"
                entry = zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes())
    return target


# --- as a stranger -------------------------------------------------------------------------------


def try_out(files, found, only):
    """Install every file into fresh environments; run the smoke test and the examples."""
    chosen = list(dict.fromkeys((v, python) for v, python, _ in pythons.chosen(found, only)))
    failed = []
    for (major, minor), python in chosen:
        for file in files:
            title = f"Python {major}.{minor}, {file.name}"
            print(f"\n{title}", flush=True)
            folder = fresh_environment(python, FOLDER / f"{major}.{minor}")
            done = subprocess.run([*pip(folder), "install", "--quiet", "--no-compile", file])
            if done.returncode or not smoke(folder, []):
                failed.append(title)
            shutil.rmtree(folder)
    wheel = next(file for file in files if file.suffix == ".whl")
    failed += examples(wheel, chosen[-1][1])
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


def examples(wheel, python):
    """Names of the examples that fail, copied to a folder outside of the clone."""
    folder = fresh_environment(python, FOLDER / "examples")
    what = f"{wheel}[{','.join(EXTRAS)}]"
    subprocess.run([*pip(folder), "install", "--quiet", "--no-compile", what, ROBOTS], check=True)
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DISPLAY"))}
    settings |= {"MPLBACKEND": "agg", "KINETREE_CACHE": str(folder / "cache")}
    failed = []
    print(f"\nexamples, without {', '.join(LEFT_OUT)}", flush=True)
    # A name with a space and letters beyond ASCII, as people have them.
    with tempfile.TemporaryDirectory(prefix="José's examples ") as outside:
        copy = shutil.copytree(ROOT / "examples", Path(outside) / "examples")
        folders = ("", "gallery/", "first_hour/")
        for script in sorted(x for folder in folders for x in copy.glob(f"{folder}*.py")):
            if script.name in LEFT_OUT:
                continue
            command = [in_environment(folder), script]
            both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            done = subprocess.run(command, cwd=outside, env=settings, **both)
            print(f"  {script.name:40s} {'ok' if not done.returncode else 'failed'}", flush=True)
            if done.returncode:
                print(done.stdout[-3000:], flush=True)
                failed.append(script.name)
    shutil.rmtree(folder)
    return failed


if __name__ == "__main__":
    main()
