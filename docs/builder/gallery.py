"""The gallery: an index of pictures, and a page for each example; and the list of tutorials."""

import kinetree as kt
from builder import DOCS, ROOT
from builder.scripts import Shown, run_all
from kinetree.cli import demo

TUTORIALS = DOCS / "tutorials"
EXAMPLES = ROOT / "examples" / "gallery"
OUT = ROOT / "out" / "docs"


def scripts(folder) -> list:
    """The scripts of a folder, in the order of their names."""
    return sorted(folder.glob("[!_]*.py"))


def tutorials() -> list:
    """The tutorials, and the examples that are written in cells, too."""
    examples = (p for p in scripts(EXAMPLES.parent) if "\n# %%" in p.read_text(encoding="utf-8"))
    return [*scripts(TUTORIALS), *examples]


def shown() -> dict[str, list[Shown]]:
    """Tutorials and examples, executed; those of one kind by section of the site."""
    paths = {"tutorials": tutorials(), "gallery": scripts(EXAMPLES)}
    found = {}
    for section, files in paths.items():
        found[section] = run_all(files, OUT / section)
    return found


def pages(results: dict[str, list[Shown]]) -> dict[str, str]:
    """Markdown by path on the site."""
    found = {}
    for section, shows in results.items():
        found[f"{section}/index.md"] = _index(section, shows)
        for show in shows:
            name = show.script.path.stem
            origin = show.script.path.relative_to(ROOT).as_posix()
            up = "../" * (1 + section.count("/"))
            footer = f"\n[The whole script]({up}source/{origin}.html)\n"
            if section == "tutorials":
                footer = (
                    f"\n[Download a notebook]({notebook_name(show.script)}) for Jupyter, or see "
                    f"[the whole script]({up}source/{origin}.html).\n"
                )
            found[f"{section}/{name}.md"] = show.markdown(f"{name}/") + footer
    return found


def notebook_name(script) -> str:
    """Where the notebook of a tutorial is, seen from the page."""
    return f"{script.path.stem}/{script.path.stem}.ipynb"


def files(results: dict[str, list[Shown]]):
    """Pairs of a path on the site and the file to put there."""
    for section, shows in results.items():
        for show in shows:
            for name in (name for names in show.files for name in names):
                yield f"{section}/{show.script.path.stem}/{name}", show.folder / name


def moving_arm() -> str:
    """The page of the arm that draws, for the home page."""
    model = kt.samples.panda()
    motion, _ = demo.draw_flower(model, 6.0)
    return kt.viewer.embedded(motion, **demo.FLOWER).text


_HEADS = {
    "tutorials": (
        "Tutorials",
        "Read these in order to learn kinetree. Each is a script with its output, and can be "
        "downloaded as a notebook. The scripts are in `docs/tutorials/`, the last two in "
        "`examples/`; `make notebooks` writes all notebooks.",
    ),
    "gallery": (
        "Gallery",
        "Examples of less than 80 lines, each with a picture. Copy the one closest to your "
        "problem; they are in `examples/gallery/`.",
    ),
}


def _index(section, shows):
    title, about = _HEADS[section]
    cards = []
    for show in shows:
        name, first = show.script.path.stem, show.script.about.partition("\n\n")[0]
        picture = f"{name}/{show.thumbnail}" if show.thumbnail else None
        image = f'<img src="{picture}" alt="" loading="lazy">' if picture else ""
        cards.append(
            f'<a class="card" href="{name}.html">{image}<strong>{show.script.title}</strong>'
            f"<span>{' '.join(first.split())}</span></a>"
        )
    return f'# {title}\n\n{about}\n\n<div class="cards">\n{chr(10).join(cards)}\n</div>\n'
