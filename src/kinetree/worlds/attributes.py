"""Messages for attributes that a ``World`` does not have."""

from kinetree.model.geometry import SHAPES
from kinetree.spelling import did_you_mean

_ELSEWHERE = {
    "add_camera": "world.render(kinetree.camera(position, target)), or add it to a part's model",
    "add_light": "world.render(camera): it has a sun; shadows=False leaves out shadows",
    "bodies": "world.model.body_names, or world['name'] for a part",
    "camera": "world.render(camera); world.cameras lists them",
    "close": "nothing: a world keeps nothing open",
    "data": "the state is world.q, world.qd and world.time",
    "dt": "world.timestep",
    "floor": "world.add_ground()",
    "forward": "world.step()",
    "ground": "world.add_ground()",
    "image": "world.render(camera)",
    "load_model": "world.add('robot.urdf')",
    "objects": "world.model.body_names, or world['name'] for a part",
    "picture": "world.render(camera), or kinetree.viewer.picture(world, 'world.png')",
    "plot": "world.view()",
    "qpos": "world.q",
    "qvel": "world.qd",
    "run": "world.step(n), or kinetree.simulate(world, duration=...)",
    "set_gravity": "kinetree.World(gravity=...)",
    "show": "world.view()",
    "screenshot": "world.render(camera), or kinetree.viewer.picture(world, 'world.png')",
    "simulate": "world.step(n)",
    "spawn": "world.add('robot.urdf') or world.add(kinetree.geometry.Box(...), name=...)",
    "step_simulation": "world.step()",
    "viewer": "world.view()",
}
"""What other libraries call it, or a newcomer, and what to write here."""
_WITHIN = {
    "image": "world.render(camera)",
    "record": "kinetree.viewer.record(kinetree.simulate(world, duration=...), 'world.mp4')",
    "video": "kinetree.viewer.record(kinetree.simulate(world, duration=...), 'world.mp4')",
}
"""The same for names that hold a word."""
_ADDED = {
    "robot": "'robot.urdf'", "urdf": "'robot.urdf'", "mjcf": "'robot.xml'",
    "ground": "world.add_ground()", "plane": "world.add_ground()", "floor": "world.add_ground()",
    "model": "model", "body": "geometry.Box(...)", "object": "geometry.Box(...)",
}  # fmt: skip


def no_attribute(world, name: str) -> str:
    """Error message for a missing attribute of ``World``, with a hint what to write instead."""
    return f"a World has no attribute {name!r}; {_advice(world, name)}"


def _advice(world, name):
    """Hint for an attribute name that world classes of other libraries have."""
    verb, _, what = name.partition("_")
    if name in _ELSEWHERE:
        return f"write {_ELSEWHERE[name]}"
    if verb in ("add", "create", "make", "spawn", "load"):
        found = _ADDED.get(what)
        if found is not None:
            return f"write {found if 'world' in found else f'world.add({found})'}"
        for shape in SHAPES:
            if shape.__name__.lower() == what.replace("_", ""):
                return f"write world.add(kinetree.geometry.{shape.__name__}(...), name=...)"
    if verb in ("remove", "delete"):
        return "write world.remove(name)"
    for word, found in _WITHIN.items():
        if word in name and name not in world:
            return f"write {found}"
    if name in world:
        return f"parts are found by name: world[{name!r}]"
    known = [k for k in dir(world) if not k.startswith("_")]
    return did_you_mean(name, known, "dir(world) lists what it has")
