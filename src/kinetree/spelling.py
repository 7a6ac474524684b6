"""What somebody may have meant who wrote a name that is not known."""

import difflib

__all__ = ["close_names", "did_you_mean", "suggesting"]

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
    """Known names that are spelled alike, whatever the case, or that begin with ``name``.

    Of enormous names and lists only the beginning counts.
    """
    plain = {k.lower(): k for k in reversed(list(known)[:2000])}
    wanted = str(name)[:100].lower()
    close = difflib.get_close_matches(wanted, plain, n=most, cutoff=cutoff)
    longer = [k for k in plain if len(wanted) > 1 and k.startswith(wanted) and k not in close]
    return [plain[k] for k in (*close, *reversed(longer))][:most]


def suggesting(module, known):
    """A ``__getattr__`` for a module, whose error says what may have been meant."""

    def missing(name):
        # Tools look for names of their own in every module, such as ``__wrapped__``.
        hint = "" if name.startswith("_") else did_you_mean(name, known, "", most=2)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint and '; '}{hint}")

    return missing
