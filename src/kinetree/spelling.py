"""What somebody may have meant who wrote a name that is not known."""

import difflib

__all__ = ["close_names", "did_you_mean"]

_SHOWN = 8


def did_you_mean(name, known, otherwise=None, *, most=1, cutoff=0.6) -> str:
    """``did you mean 'x'?``, or ``otherwise`` where no name is close: by default what there is."""
    known = [str(k) for k in known]
    close = close_names(name, known, most=most, cutoff=cutoff)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    if otherwise is not None:
        return otherwise
    if not known:
        return "there are none"
    shown = ", ".join(map(repr, known[:_SHOWN]))
    return f"known: {shown}" + (f", ... ({len(known)} in all)" if len(known) > _SHOWN else "")


def close_names(name, known, *, most=1, cutoff=0.6) -> list[str]:
    """Known names that are spelled alike; of enormous names and lists only the beginning counts."""
    return difflib.get_close_matches(str(name)[:100], list(known)[:2000], n=most, cutoff=cutoff)
