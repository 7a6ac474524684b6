"""Every Python on this machine, with the lowest and with the newest versions of what we build on.

For each, a fresh environment below ``out/pythons`` and ``tests/smoke.py`` in it. The versions are
those that pyproject.toml declares; there is no second list. Environments go away when all is well.

    python .ci/pythons.py                     all Pythons from 3.10 on, lowest and newest
    python .ci/pythons.py --only ends         the oldest with the lowest, the newest with the newest
    python .ci/pythons.py --only 3.12 --keep  one of them, and its environments stay

Extras are left out, and named, where the tests leave their packages out on this machine (CuPy,
which needs a GPU; PyTorch where its wheel brings CUDA), and where a package has no wheel.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "out" / "pythons"
OURS = {"docs", "test"}  # extras for people who work on kinetree


def main():
    """Run what was requested; the exit status says whether all of it passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="all", help="all, ends, or a version such as 3.12")
    parser.add_argument("--keep", action="store_true", help="do not remove the environments")
    options = parser.parse_args()
    pythons = installed_pythons()
    if not pythons:
        sys.exit("no Python from 3.10 on is installed: none on PATH, none of pyenv")
    failed = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for names, report in pool.map(
            partial(reported, options.keep), chosen(pythons, options.only)
        ):
            print(report, flush=True)
            failed += names
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")
    print("all passed")


# --- which Pythons ---------------------------------------------------------------------------


def installed_pythons():
    """Path of the interpreter of each minor version, by version; pyenv's shims are not real."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    root = Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"))
    folders += sorted(root.glob("versions/*/bin"))
    candidates = [Path(sys.executable)]
    for folder in folders:
        if folder.name != "shims" and folder.is_dir():
            candidates += sorted(folder.glob("python*"))
    found = {}
    for path in candidates:
        if re.fullmatch(r"python(3(\.\d+)?)?(\.exe)?", path.name.lower()) and os.access(
            path, os.X_OK
        ):
            version = version_of(os.path.realpath(path))
            if version >= (3, 10):
                found.setdefault(version, os.path.realpath(path))
    return dict(sorted(found.items()))


def version_of(python):
    """Major and minor version of a CPython that can make environments; else (0, 0)."""
    code = (
        "import sys, venv, ensurepip; assert sys.implementation.name == 'cpython';"
        "print(*sys.version_info[:2], sys.version_info.releaselevel)"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if done.returncode or not done.stdout.endswith("final\n"):
        return (0, 0)
    return tuple(map(int, done.stdout.split()[:2]))


def chosen(pythons, only):
    """(version, interpreter, whether with the lowest versions) of each run."""
    versions = list(pythons)
    if only == "ends":
        return [
            (versions[0], pythons[versions[0]], True),
            (versions[-1], pythons[versions[-1]], False),
        ]
    wanted = [v for v in versions if only in ("all", "{}.{}".format(*v))]
    if not wanted:
        names = ", ".join("{}.{}".format(*v) for v in versions)
        sys.exit(f"--only must be all, ends, or one of the versions here ({names}), got {only!r}")
    return [(v, pythons[v], lowest) for v in wanted for lowest in (True, False)]


# --- one Python ------------------------------------------------------------------------------


def reported(keep, run):
    """What ``look`` returns for a run of ``chosen``, and what it prints: several are under way."""
    version, python, lowest = run
    with redirect_stdout(StringIO()) as report:
        return look(python, version, lowest, keep), report.getvalue()


def look(python, version, lowest, keep):
    """Names of the runs that failed, of one Python with the lowest or the newest versions."""
    which = "lowest" if lowest else "newest"
    title = "Python {}.{} with the {} versions".format(*version, which)
    name = "{}.{}-{}".format(*version, which)
    print(f"\n{title}", flush=True)
    failed = []
    first = fresh_environment(python, FOLDER / f"{name}-1")
    declared = Declared.on(first)
    waiting = groups(declared, lowest)
    for number, (extras, versions) in enumerate(waiting, start=1):
        folder = first if number == 1 else fresh_environment(python, FOLDER / f"{name}-{number}")
        print(f"  {folder.relative_to(ROOT)}: {', '.join(extras) or 'no extras'}", flush=True)
        installed = install(folder, extras, versions)
        if not installed and len(extras) > 1:  # what packages require of others may not go together
            print("  not together; each of these extras alone:", flush=True)
            core = held(declared.core, lowest)
            waiting += [([e], core | held(declared.extras[e], lowest)) for e in extras]
        elif not installed or not smoke(folder, extras):
            failed.append(f"{title} ({', '.join(extras) or 'no extras'})")
        if not keep:
            shutil.rmtree(folder)
    return failed


def fresh_environment(python, folder):
    """An environment with the newest pip, and nothing else; its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True)
    subprocess.run([*pip(folder), "install", "--upgrade", "pip"], check=True, capture_output=True)
    return folder


def in_environment(folder):
    """The interpreter of an environment, on Windows, too."""
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def pip(folder):
    """The command that is pip in an environment."""
    return [in_environment(folder), "-m", "pip", "--disable-pip-version-check"]


class Declared(NamedTuple):
    """What pyproject.toml declares, for one Python on this machine."""

    core: dict
    """Of each package the declared versions, such as ``">=1.26"``, and the lowest with a wheel."""
    extras: dict
    """The same for each extra by name."""
    tested: dict
    """The same for what the tests of this machine have."""

    @classmethod
    def on(cls, folder):
        """Ask the pip of an environment, which knows the markers, and which wheels fit."""
        command = [in_environment(folder), "-c", READ, ROOT / "pyproject.toml"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"versions cannot be found:\n{done.stderr}")
        core, extras = json.loads(done.stdout)
        users = {name: packages for name, packages in extras.items() if name not in OURS}
        return cls(core, users, core | extras["test"])


READ = """
import io, json, runpy, sys
from contextlib import redirect_stdout, suppress
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.version import Version
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib

with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)["project"]
sections = {"": project["dependencies"], **project["optional-dependencies"]}
found = {
    section: [r for r in map(Requirement, texts) if r.marker is None or r.marker.evaluate()]
    for section, texts in sections.items()
}
tests = {r.name: r.specifier for r in found["test"]}

def lowest(requirement):
    sys.argv = ["pip", "index", "versions", requirement.name, "--json", "--only-binary=:all:"]
    with redirect_stdout(io.StringIO()) as said, suppress(SystemExit):  # in one process: a quarter
        runpy.run_module("pip", run_name="__main__", alter_sys=True)    # of the time
    versions = json.loads(said.getvalue())["versions"] if said.getvalue() else []
    return min(bounds(requirement).filter(versions), key=Version, default=None)

def bounds(requirement):
    return requirement.specifier & tests.get(requirement.name, requirement.specifier)

needed = {(r.name, str(bounds(r))): r for s in found if s not in ("docs", "test") for r in found[s]}
low = {key: lowest(requirement) for key, requirement in needed.items()}
declared = {
    s: {r.name: (str(bounds(r)), low.get((r.name, str(bounds(r))))) for r in found[s]}
    for s in found
}
print(json.dumps([declared.pop(""), declared]))
"""


def groups(declared, lowest):
    """What to install together: lists of extras, and the versions that packages are held to.

    Extras that need a higher version of a package than others have as their lowest are a group of
    their own. What those packages require of each other is left to pip: see ``look``.
    """
    wanted = {}
    for extra, packages in declared.extras.items():
        problems = [
            f"no wheel of {name}{bounds}"
            if name in declared.tested
            else f"the tests have no {name}"
            for name, (bounds, low) in packages.items()
            if low is None or name not in declared.tested
        ]
        if problems:
            print(f"  left out on this machine: {extra} ({', '.join(problems)})", flush=True)
        else:
            wanted[extra] = held(packages, lowest)
    found = [([], held(declared.core, lowest))]
    for extra, versions in wanted.items():
        for extras, together in found:
            if all(together.get(name, version) == version for name, version in versions.items()):
                extras.append(extra)
                together.update(versions)
                break
        else:
            found.append(([extra], held(declared.core, lowest) | versions))
    return found


def held(packages, lowest):
    """The versions that packages are held to: the lowest ones, or those that the tests allow."""
    return {
        name: f"=={low}" if lowest else "" if "<" not in bounds else bounds
        for name, (bounds, low) in packages.items()
    }


def install(folder, extras, versions):
    """Whether kinetree could be installed in an environment; what pip says, if not."""
    start = time.perf_counter()
    limits = folder / "constraints.txt"
    limits.write_text("".join(f"{name}{version}\n" for name, version in versions.items()))
    what = f"{ROOT}[{','.join(extras)}]"
    command = [*pip(folder), "install", "--no-compile", "--constraint", limits, what]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, **both)
    if done.returncode:
        print(f"    {' '.join(limits.read_text().split())}\n{what_failed(done.stdout)}", flush=True)
    elif any(version.startswith("==") for version in versions.values()):
        print("    " + " ".join(f"{n}{v}" for n, v in sorted(versions.items())), flush=True)
    print(f"  {'installed':40s} {time.perf_counter() - start:6.1f} s", flush=True)
    return done.returncode == 0


def what_failed(said):
    """What pip says from its first error on, with the conflict; without errors its last lines."""
    lines = said.splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith("ERROR:")), -30)
    return "\n".join(lines[first:][:200])


def smoke(folder, extras):
    """Whether the smoke test passes, of what is installed and not of the tree around it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment["KINETREE_CACHE"] = str(folder / "cache")
    command = [in_environment(folder), ROOT / "tests" / "smoke.py", *extras]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, cwd=folder, env=environment, **both)
    print(done.stdout, end="", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
