"""Connections of links and joints, before a model is built from them."""

from collections import Counter

from kinetree.doctor.findings import found, named
from kinetree.loaders.report import short
from kinetree.spelling import close_names

_MOST = 8


def names(facts):
    """Names that are used twice."""
    for parts in (facts.links, facts.joints):
        first = {}
        for part in parts:
            if part.name and part.name in first:
                text = f"the name is taken already, on line {first[part.name]}"
                yield found("duplicate-name", part.part, text, part.place)
            first.setdefault(part.name, part.place.line)


def connections(facts):
    """References that lead nowhere, links with two parents, cycles and loose ends."""
    links = {link.name: link for link in reversed(facts.links)}
    joints = [j for j in facts.joints if j.parent and j.child]
    for joint in joints:
        ends = (
            ("parent", joint.parent, joint.parent_place),
            ("child", joint.child, joint.child_place),
        )
        for role, name, place in ends:
            if name not in links:
                close = close_names(name, links, cutoff=0.75)
                hint = f"; did you mean {short(close[0])}?" if close else ""
                text = f"its {role} {short(name)} does not exist{hint}"
                yield found("unknown-name", joint.part, text, place)
    yield from _two_parents(joints)
    parent = {j.child: j.parent for j in reversed(joints) if {j.parent, j.child} <= set(links)}
    cycles = list(_cycles(parent))
    for cycle in cycles:
        joint = next(j for j in joints if j.child == cycle[0])
        around = [*reversed(cycle), cycle[-1]]
        if len(around) > _MOST:
            around = [*around[: _MOST - 2], f"... ({len(cycle)} in all)", around[-1]]
        text = f"each of these hangs on another: {' > '.join(map(_cut, around))}"
        yield found("cycle", joint.part, text, joint.place)
    yield from _several_roots(facts, links, parent)


def _cut(name):
    return name if len(name) <= 40 else f"{name[:37]}..."


def _two_parents(joints):
    for name, count in Counter(j.child for j in joints).items():
        if count > 1:
            by = [j for j in joints if j.child == name]
            listed = ", ".join(short(j.name) for j in by[:_MOST])
            text = f"it hangs on {count} joints: {listed}"
            yield found("two-parents", named("body", name), text, by[1].place)


def _cycles(parent):
    """Each cycle of links once, children before parents."""
    settled = set()
    for start in parent:
        path, name = {}, start
        while name in parent and name not in settled and name not in path:
            path[name] = len(path)
            name = parent[name]
        if name in path:
            yield list(path)[path[name] :]
        settled.update(path)


def _several_roots(facts, links, parent):
    """Bodies that no joint connects to the largest tree."""
    roots = [name for name in links if name not in parent]
    trees = Counter(_roots(links, parent).values())
    if len(roots) < 2:
        return
    main = max(roots, key=lambda root: (trees[root], -facts.links.index(links[root])))
    children = {joint.child for joint in facts.joints}  # those of broken joints have a finding
    for root in reversed(roots):
        if root != main and root not in children:
            others = trees[root] - 1
            what = f"it and the {others} that hang on it" if others else "it"
            text = f"no joint connects {what} to {short(main)}, the root of the robot"
            yield found("several-roots", named("body", root), text, links[root].place)


def _roots(links, parent):
    """The root that each link hangs on in the end; none for cycles."""
    found = {}
    for start in links:
        path, name = {}, start
        while name in parent and name not in found and name not in path:
            path[name] = None
            name = parent[name]
        root = found.get(name, None if name in path else name)
        found.update(dict.fromkeys([*path, name] if root == name else path, root))
    return found
