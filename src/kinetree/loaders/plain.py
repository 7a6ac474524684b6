"""Models as JSON, as ``Model.to_dict`` writes them."""

import json

from kinetree.model import Model

__all__ = ["read_json"]

_LONGEST = 20  # digits


def read_json(source, report, folders, options) -> Model:
    """The model in the JSON text of ``Model.to_dict``."""
    try:
        data = json.loads(source, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise report.error(error.lineno, f"this is no JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise report.error(None, f"this is no JSON: {error}") from None
    bodies = data.get("bodies") if isinstance(data, dict) else ()
    report.check_bodies(len(bodies) if isinstance(bodies, list) else 0)
    try:
        return Model.from_dict(data)
    except (TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise report.error(None, f"this JSON is no model: {error}") from error


def _whole(digits):
    """A whole number, as a float where it has more digits than any of a model."""
    return int(digits) if len(digits) < _LONGEST else float(digits)
