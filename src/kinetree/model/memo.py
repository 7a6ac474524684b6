"""Objects kept with a model as long as it lives, and warnings given once."""

from typing import Any

from kinetree import errors
from kinetree.codegen.program import note, noting


def remember(model, key, make) -> Any:
    """Result of ``make()``, cached with the model under a key.

    Args:
        model: the model.
        key: a tuple that begins with the name of the function that owns it.
        make: computes it the first time.
    """
    found = model.memo.get(key)
    if found is None:
        with noting() as noted:
            found = model.memo[key] = make()
        if noted:
            model.memo[_NOTED, key] = tuple(noted)
    elif (_NOTED, key) in model.memo:
        note(model.memo[_NOTED, key])
    return found


_NOTED = "warnings given by"


def warn_once(model, message, category):
    """Issue a warning about a model, once for each model and message.

    Kernels that are traced meanwhile keep the warning with their code on disk, and processes that
    find it there are warned as well: what a script says does not depend on the cache.

    Args:
        model: the model.
        message: what to say.
        category: a class of ``kinetree.errors``.
    """
    warning = category.__name__, message
    note([warning])
    give_once(model, warning)


def give_once(model, warning):
    """Issue a warning (category, message) unless it was issued for this model before."""
    given = model.numeric.memo.setdefault("warnings given", set())
    if warning not in given:
        given.add(warning)
        name, message = warning
        errors.warn(message, getattr(errors, name))
