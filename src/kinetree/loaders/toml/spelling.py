"""What somebody may have meant."""

import difflib

__all__ = ["suggestion"]


def suggestion(name, known) -> str:
    """``did you mean 'x'?``, or else a list of what there is."""
    known = [str(k) for k in known]
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if not known:
        return "there are none"
    shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    return f"known: {shown}"
