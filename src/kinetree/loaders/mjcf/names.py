"""Names of what is in a compiled MuJoCo model, made up where there are none, and kept unique."""

__all__ = ["body_names", "joint_names", "model_name", "names_of", "unused"]


def names_of(mj_model, kind):
    """Names of all things of a kind (``"body"``, ``"jnt"``, ``"site"``, ...); empty if unnamed."""
    text = bytes(mj_model.names)
    return [_name_at(text, int(start)) for start in getattr(mj_model, f"name_{kind}adr")]


def model_name(mj_model):
    """What the model is called."""
    return _name_at(bytes(mj_model.names), 0)


def _name_at(text, start):
    return text[start : text.index(b"\0", start)].decode("utf-8", "replace")


def body_names(mj_model):
    """Names of the bodies, the world first; unnamed ones are called after their number."""
    given = names_of(mj_model, "body")
    taken = set(given)
    return [name or _take(f"body_{b}", taken) for b, name in enumerate(given)]


def joint_names(mj_model):
    """Names of the joints; unnamed ones are called after their body."""
    given = names_of(mj_model, "jnt")
    bodies, taken = body_names(mj_model), set(given)
    result = []
    for j, name in enumerate(given):
        body = mj_model.jnt_bodyid[j]
        several = mj_model.body_jntnum[body] > 1
        number = f"_{j - mj_model.body_jntadr[body] + 1}" if several else ""
        result.append(name or _take(f"{bodies[body]}_joint{number}", taken))
    return result


def unused(name, suffix, taken):
    """``name``, with a suffix and then a number if it is taken; the choice is taken from then."""
    return _take(name if name not in taken else f"{name}_{suffix}", taken)


def _take(name, taken):
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate
