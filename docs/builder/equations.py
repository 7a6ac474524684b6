r"""Equations as MathML, at build time: browsers draw them without a script or a network.

Pages hold LaTeX between ``$`` or ``$$``, as repository browsers know it. The extension
``arithmatex`` wraps it in ``\(...\)`` or ``\[...\]``; here the wrapped text is converted.
"""

import re
from functools import cache
from html import unescape

from latex2mathml.converter import convert

_WRAPPED = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)


def render(html: str) -> str:
    """A page with its equations as MathML."""
    return _WRAPPED.sub(_mathml, html)


def _mathml(match):
    tag, latex = match.groups()
    block = tag == "div"
    math = _converted(unescape(latex).strip(), "block" if block else "inline")
    return f'<div class="equation">{math}</div>' if block else math


@cache
def _converted(latex, display):
    return convert(latex, display=display)
