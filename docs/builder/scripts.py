"""Tutorials and gallery examples: Python scripts that are run, and shown with what they produce.

A script starts with a docstring: a title, and what it is about. Lines ``# %%`` divide it into
cells; comments right after such a line are Markdown. After each cell the page shows what it
printed, the figures of matplotlib it left open, and the pictures, films and HTML pages it wrote to
the current folder.
"""

import ast
import contextlib
import io
import os
import re
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

SHOWN = {
    ".png": "![{alt}]({path})",
    ".svg": "![{alt}]({path})",
    ".gif": "![{alt}]({path})",
    ".mp4": '<video controls loop muted playsinline src="{path}" title="{alt}"></video>',
    ".html": '<iframe src="{path}" title="{alt}" loading="lazy"></iframe>',
}
"""Files a cell may leave, and how a page shows them."""
PICTURES = (".png", ".svg", ".gif")


@dataclass(frozen=True)
class Script:
    """A script in parts.

    Attributes:
        path: the file.
        title: first line of its docstring, without the full stop.
        about: the rest of it.
        cells: Markdown, code, and the line where the code begins.
    """

    path: Path
    title: str
    about: str
    cells: tuple

    @classmethod
    def read(cls, path) -> "Script":
        """The script in a file."""
        text = Path(path).read_text(encoding="utf-8")
        tree = ast.parse(text)
        doc = ast.get_docstring(tree)
        if not doc:
            raise ValueError(f"{path} must start with a docstring: a title, and what it is about")
        title, _, about = doc.partition("\n")
        lines = text.splitlines()
        marks = [k for k, line in enumerate(lines) if line.startswith("# %%")]
        starts = [tree.body[0].end_lineno, *(k + 1 for k in marks)]
        cells = [_cell(lines, *ends) for ends in zip(starts, [*marks, len(lines)], strict=True)]
        return cls(Path(path), title.rstrip("."), about.strip(), tuple(c for c in cells if c[1]))


def _cell(lines, start, end):
    """Comments before the first line of code are Markdown; a blank line ends them."""
    code = start
    while code < end and lines[code].startswith("#"):
        code += 1
    words = "\n".join(line.lstrip("#").removeprefix(" ") for line in lines[start:code])
    while code < end and not lines[code].strip():
        code += 1
    return words.strip(), "\n".join(lines[code:end]).rstrip(), code


@dataclass(frozen=True)
class Shown:
    """Results of a script.

    Attributes:
        script: the script.
        printed: text, by cell.
        files: names of files, by cell.
        folder: where the files are.
    """

    script: Script
    printed: tuple
    files: tuple
    folder: Path

    @property
    def thumbnail(self) -> str | None:
        """The last picture, which stands for the whole."""
        pictures = [f for files in self.files for f in files if f.endswith(PICTURES)]
        return pictures[-1] if pictures else None

    def markdown(self, prefix="") -> str:
        """The page; files are linked with ``prefix`` before their names."""
        lines = [f"# {self.script.title}", "", self.script.about, ""]
        for (words, code, _), printed, files in zip(
            self.script.cells, self.printed, self.files, strict=True
        ):
            lines += [words, ""] if words else []
            lines += ["```python", re.sub(r"  # (fmt: skip|noqa.*)", "", code), "```", ""]
            lines += ["```text", printed.rstrip("\n"), "```", ""] if printed.strip() else []
            for file in files:
                alt = f"{self.script.title}: {Path(file).stem}"
                lines += [SHOWN[Path(file).suffix].format(path=prefix + file, alt=alt), ""]
        return "\n".join(lines)


def run(script: Script, folder, draft=False) -> Shown:
    """Execute a script cell by cell, with ``folder`` as current folder.

    ``draft``: figures are drawn once, and small, which is enough to see that they can be.
    """
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    plt.close("all")  # of somebody else in this process
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in _shown_files(folder):
        old.unlink()
    names, printed, files = {"__name__": "__main__", "__file__": str(script.path)}, [], []
    with _current(folder):
        for number, (_, code, line) in enumerate(script.cells, 1):
            before = {p.name for p in _shown_files(folder)}
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * line + code, str(script.path), "exec"), names)
            _save_figures(
                number, **({"dpi": 40} if draft else {"dpi": 130, "bbox_inches": "tight"})
            )
            printed.append(out.getvalue())
            files.append(tuple(p.name for p in _shown_files(folder) if p.name not in before))
    return Shown(script, tuple(printed), tuple(files), folder)


def run_all(paths, folder, workers=2) -> list[Shown]:
    """Execute scripts, each in its own process, ``workers`` at a time."""
    scripts = [Script.read(path) for path in paths]
    folders = [Path(folder) / script.path.stem for script in scripts]
    with get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        return pool.starmap(run, zip(scripts, folders, strict=True), chunksize=1)


def _shown_files(folder):
    return sorted(p for p in folder.iterdir() if p.suffix in SHOWN)


def _save_figures(number, **how):
    import matplotlib.pyplot as plt

    for count, figure in enumerate(plt.get_fignums(), 1):
        plt.figure(figure).savefig(f"figure_{number}_{count}.png", **how)
    plt.close("all")


@contextlib.contextmanager
def _current(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
