"""Turns the pages, scripts and docstrings of this repository into the documentation site.

``mkdocs.yml`` names ``builder/hooks.py``; everything else here is called from there. ``make docs``
builds the site. How to add a page, a tutorial or a gallery example: docs/contributing_docs.md.
"""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
