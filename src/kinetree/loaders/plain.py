"""Models as JSON, as ``Model.to_dict`` writes them."""

import json

from kinetree.model import Model

__all__ = ["read_json"]


def read_json(source, report, folders, options) -> Model:
    """The model in the JSON text of ``Model.to_dict``."""
    try:
        data = json.loads(source)
    except (UnicodeDecodeError, RecursionError) as error:
        raise report.error(None, f"this is no JSON: {error}") from None
    except json.JSONDecodeError as error:
        raise report.error(error.lineno, f"this is no JSON: {error.msg}") from None
    try:
        return Model.from_dict(data)
    except (TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise report.error(None, f"this JSON is no model: {error}") from error
