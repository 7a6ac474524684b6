"""Installs this clone with some of its extras: by uv where it can be had, or else by pip.

    python .ci/install.py test

pip reads the pages of an index one after the other and unpacks one wheel after the other. uv takes
a quarter of that time and finds the same versions with the settings that pip has.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

LISTS = {
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}
SWITCHES = {"no-index": "--no-index", "no-cache-dir": "--no-cache"}
VARIABLES = {
    "cert": "SSL_CERT_FILE", "timeout": "UV_HTTP_TIMEOUT", "default-timeout": "UV_HTTP_TIMEOUT"
}  # fmt: skip
WITHOUT_EFFECT = {
    "disable-pip-version-check", "no-color", "no-compile", "no-input", "no-python-version-warning",
    "no-warn-script-location", "progress-bar", "quiet", "retries", "root-user-action", "verbose",
}  # fmt: skip
"""Settings of pip that do not change what is installed."""


def settings(listed: str) -> dict[str, str]:
    """Settings of pip by name, from what ``pip config list`` prints.

    Those of the environment come before those of one command, and these before those of all.
    """
    found = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        place, _, key = name.rpartition(".")
        rank = {":env:": 2, "install": 1, "global": 0}.get(place)
        if rank is not None and rank >= found.get(key, (0, ""))[0]:
            found[key] = rank, ast.literal_eval(value)
    return {key: value for key, (_, value) in found.items()}


def for_uv(given: dict[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """The same as options and variables of uv; None where a setting has no equal."""
    options, variables = ["--index-strategy", "unsafe-best-match"], {}  # pip's
    for key, value in given.items():
        if key == "index-url":
            options += ["--index-url", value]
        elif key in LISTS:
            options += [x for each in value.split() for x in (LISTS[key], each)]
        elif key in SWITCHES:
            options += [SWITCHES[key]] if value.lower() in ("1", "true", "yes", "on") else []
        elif key in VARIABLES:
            variables[VARIABLES[key]] = value
        elif key not in WITHOUT_EFFECT:
            return None
    return options, variables


def install(what: str, run=subprocess.run) -> int:
    """Exit status of whatever installed it at last."""
    pip = [sys.executable, "-m", "pip"]
    listed = run([*pip, "config", "list"], capture_output=True, text=True)
    translated = for_uv(settings(listed.stdout)) if listed.returncode == 0 else None
    if translated and run([*pip, "install", "--quiet", "uv"], capture_output=True).returncode == 0:
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--editable", what]
        command += ["--python", sys.executable, *translated[0]]
        if run(command, cwd=ROOT, env={**os.environ, **translated[1]}).returncode == 0:
            return 0
        print("uv could not install everything: pip does it", flush=True)
    # What is imported compiles itself.
    command = [*pip, "install", "--quiet", "--no-compile", "--editable", what]
    return run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(install(f".[{','.join(sys.argv[1:])}]"))
