"""Runs the type checker where something has changed since it last found nothing.

It takes longer than any other static check and depends on three things alone: our source, its
settings and the packages that are installed. ``.venv/.types-checked`` holds their digest.
"""

import hashlib
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKED = Path(sys.prefix) / ".types-checked"


def digest(root=ROOT, packages=None) -> str:
    """Digest of names and contents of all that the checker reads."""
    packages = Path(packages or sysconfig.get_path("purelib"))
    found = hashlib.sha256()
    for path in sorted(p for p in (root / "src").rglob("*.py*") if p.suffix in (".py", ".pyi")):
        found.update(f"{path.relative_to(root).as_posix()}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    found.update((root / "pyproject.toml").read_bytes())
    for name in sorted(p.name for p in packages.glob("*.dist-info")):
        found.update(f"{name}\0".encode())
    return found.hexdigest()


def check(command, now, checked=CHECKED) -> int:
    """Exit status of the checker, or 0 where it would read what it read last time."""
    if checked.exists() and checked.read_text(encoding="utf-8") == now:
        print("types: nothing has changed since the last check")
        return 0
    status = subprocess.run(command).returncode
    if status == 0:
        checked.write_text(now, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(check(sys.argv[1:], digest()))
