"""Tutorials as notebooks for Jupyter: the cells of the tested scripts, with what they produced.

    python -m builder.notebooks FOLDER    all tutorials, not run: what ``make notebooks`` writes

The site carries them with their outputs; a page of a tutorial links to its notebook.
"""

import base64
import html
import json
import sys
from pathlib import Path

from builder import gallery
from builder.scripts import Script, Shown

_IMAGES = {".png": "image/png", ".gif": "image/gif"}


def of_script(script: Script) -> dict:
    """The notebook of a script that was not run."""
    return _notebook(script, [[]] * len(script.cells))


def of_shown(shown: Shown) -> dict:
    """The notebook of a script with what it printed, drew and wrote."""
    outputs = []
    for printed, files in zip(shown.printed, shown.files, strict=True):
        text = {"output_type": "stream", "name": "stdout", "text": _lines(printed)}
        outputs.append([text] if printed.strip() else [])
        outputs[-1] += [_output(shown.folder / name) for name in files]
    return _notebook(shown.script, outputs)


def text_of(notebook: dict) -> str:
    """Contents of an ``.ipynb`` file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _notebook(script, outputs):
    cells = [_markdown(f"# {script.title}\n\n{script.about}", "title")]
    for k, ((words, code, _), found) in enumerate(zip(script.cells, outputs, strict=True), 1):
        cells += [_markdown(words, f"words-{k}")] if words else []
        cells.append({
            "cell_type": "code", "id": f"code-{k}", "metadata": {}, "source": _lines(code),
            "execution_count": k if any(outputs) else None, "outputs": found,
        })  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _markdown(text, name):
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(text)}


def _lines(text):
    return text.splitlines(keepends=True)


def _output(path):
    """A file that a cell left, inside of the notebook."""
    data = path.read_bytes()
    coded = base64.b64encode(data).decode("ascii")
    if path.suffix in _IMAGES:
        kind, value = _IMAGES[path.suffix], coded
    elif path.suffix == ".svg":
        kind, value = "image/svg+xml", data.decode()
    elif path.suffix == ".mp4":
        kind, value = "text/html", f'<video controls src="data:video/mp4;base64,{coded}"></video>'
    else:
        inside = html.escape(data.decode(), quote=True)
        kind = "text/html"
        value = f'<iframe srcdoc="{inside}" style="width:100%;height:480px;border:0"></iframe>'
    shown = {kind: value, "text/plain": path.name}
    return {"output_type": "display_data", "data": shown, "metadata": {}}


def main(folder):
    """Write all tutorials."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in gallery.tutorials():
        target = folder / f"{path.stem}.ipynb"
        target.write_text(text_of(of_script(Script.read(path))), encoding="utf-8")
        print(f"wrote {target}")


if __name__ == "__main__":
    main(sys.argv[1])
