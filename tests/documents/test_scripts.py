"""Tutorials and gallery examples run, and their pages show what they leave behind."""

import json

import pytest
from builder import gallery, notebooks, scripts

TUTORIALS, EXAMPLES = gallery.scripts(gallery.TUTORIALS), gallery.scripts(gallery.EXAMPLES)
TEXT = '''"""A title.

What it is about.
"""

# %%
# Words with $x$ in them.

import matplotlib.pyplot as plt

print("printed")
plt.figure()

# %%
import pathlib

pathlib.Path("film.mp4").write_bytes(b"")
pathlib.Path("notes.txt").write_text("not shown")
'''


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "a_script.py"
    path.write_text(TEXT, encoding="utf-8")
    return scripts.Script.read(path)


@pytest.mark.parametrize("path", [*TUTORIALS, *EXAMPLES], ids=lambda path: path.stem)
def test_script_runs_and_has_a_picture(path, tmp_path):
    shown = scripts.run(scripts.Script.read(path), tmp_path, draft=True)
    assert shown.thumbnail
    assert shown.script.about


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


def test_cells_are_words_and_code(script):
    assert (script.title, script.about) == ("A title", "What it is about.")
    assert [words for words, _, _ in script.cells] == ["Words with $x$ in them.", ""]
    assert [line for _, _, line in script.cells] == [8, 14]


def test_a_page_shows_what_cells_leave_behind(script, tmp_path):
    shown = scripts.run(script, tmp_path / "out")
    assert shown.printed == ("printed\n", "")
    assert shown.files == (("figure_1_1.png",), ("film.mp4",))
    assert shown.thumbnail == "figure_1_1.png"
    page = shown.markdown("a/")
    assert page.startswith(
        "# A title\n\nWhat it is about.\n\nWords with $x$ in them.\n\n```python\n"
    )
    assert "```text\nprinted\n```\n\n![A title: figure_1_1](a/figure_1_1.png)" in page
    assert '<video controls loop muted playsinline src="a/film.mp4"' in page


def test_an_error_names_the_line_of_the_script(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text('"""Broken."""\n\n# %%\n# Words.\n\n1 / 0\n', encoding="utf-8")
    with pytest.raises(ZeroDivisionError) as caught:
        scripts.run(scripts.Script.read(path), tmp_path)
    assert caught.traceback[-1].lineno + 1 == 6


def test_a_script_without_a_docstring_is_rejected(tmp_path):
    path = tmp_path / "bare.py"
    path.write_text("print(1)\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"bare\.py must start with a docstring: a title"):
        scripts.Script.read(path)


def test_the_index_has_a_card_for_each(script, tmp_path):
    shown = scripts.run(script, tmp_path / "a_script")
    page = gallery._index("gallery", [shown])
    assert 'href="a_script.html"><img src="a_script/figure_1_1.png"' in page
    assert "<strong>A title</strong><span>What it is about.</span>" in page


# --- notebooks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_notebook_has_the_cells_of_the_script(path):
    script = scripts.Script.read(path)
    notebook = json.loads(notebooks.text_of(notebooks.of_script(script)))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code == [code for _, code, _ in script.cells]
    assert "".join(cells[0]["source"]).startswith(f"# {script.title}\n")
    assert "__file__" not in "".join(code)  # which Jupyter does not have


def test_a_notebook_keeps_what_cells_leave_behind(tmp_path):
    path = tmp_path / "a_script.py"
    path.write_text(TEXT, encoding="utf-8")
    shown = scripts.run(scripts.Script.read(path), tmp_path / "out", draft=True)
    (shown.folder / "page.html").write_text('<p class="a">')
    shown = scripts.Shown(
        shown.script, shown.printed, (shown.files[0], ("page.html",)), shown.folder
    )
    first, second = (c for c in notebooks.of_shown(shown)["cells"] if c["cell_type"] == "code")
    assert first["outputs"][0] == {"output_type": "stream", "name": "stdout", "text": ["printed\n"]}
    assert set(first["outputs"][1]["data"]) == {"image/png", "text/plain"}
    assert (
        '<iframe srcdoc="&lt;p class=&quot;a&quot;&gt;"'
        in second["outputs"][0]["data"]["text/html"]
    )


def test_pages_of_tutorials_link_to_their_notebooks(tmp_path):
    script = scripts.Script.read(TUTORIALS[0])
    count = len(script.cells)
    shown = scripts.Shown(script, ("",) * count, ((),) * count, tmp_path)
    pages = gallery.pages({"tutorials": [shown], "gallery": []})
    name = script.path.stem
    assert f"[Download a notebook]({name}/{name}.ipynb)" in pages[f"tutorials/{name}.md"]
