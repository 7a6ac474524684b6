r"""Equations as MathML, at build time: browsers draw them without a script or a network.

Pages hold LaTeX between ``$`` or ``$$``, as repository browsers know it. The extension
``arithmatex`` wraps it in ``\(...\)`` or ``\[...\]``; here the wrapped text is converted.
"""

import re
from functools import cache
from html import unescape

from latex2mathml.converter import convert

_WRAPPED = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
_PUNCTUATED = re.compile(r"(<math\b[^>]*inline(?:(?!</math>).)*</math>)([.,;:)?]+)", re.S)
_STRUCTURE = re.compile(r"(\\[{}]|[{}]|\\(?:begin|end|left|right|qquad)(?![a-zA-Z]))")
_OPENS, _CLOSES = ("{", r"\begin", r"\left"), ("}", r"\end", r"\right")


def render(html: str) -> str:
    """A page with its equations as MathML."""
    return _PUNCTUATED.sub(
        r'<span style="white-space: nowrap">\1\2</span>', _WRAPPED.sub(_mathml, html)
    )


def _mathml(match):
    tag, latex = match.groups()
    latex = unescape(latex).strip()
    if tag == "span":
        return _converted(latex, "inline")
    parts = (f"<div>{_converted(part, 'block')}</div>" for part in _side_by_side(latex))
    return f'<div class="equation">{"".join(parts)}</div>'


def _side_by_side(latex):
    r"""Equations with ``\qquad`` between them, which may stand below each other on a phone."""
    parts, depth = [""], 0
    for piece in _STRUCTURE.split(latex):
        depth += (piece in _OPENS) - (piece in _CLOSES)
        if piece == r"\qquad" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts if part.strip()]


@cache
def _converted(latex, display):
    return convert(latex, display=display)
