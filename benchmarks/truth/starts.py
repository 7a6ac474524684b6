"""Worlds that start, or are set, with bodies inside each other."""

import tempfile
import warnings
from pathlib import Path

import mujoco

import kinetree as kt
from kinetree.model import geometry as g
from truth.judge import Judge
from truth.registry import row
from truth.scene import Scene, Thing
from truth.verdict import Result, limits_of, timed


@row("set inside")
def set_inside() -> Result:
    """A box set 5 cm inside another after the first step."""
    scene = Scene(
        (
            Thing("a", g.Box((0.2, 0.2, 0.2)), 1.0, (0, 0, 0.1)),
            Thing("b", g.Box((0.2, 0.2, 0.2)), 1.0, (0, 0, 0.5)),
        ),
        steps=3,
    )
    judge = Judge(scene)
    judge.step()
    judge.world["b"].pose = kt.xlt([0, 0, 0.25])
    steps = judge.run()
    result = Result("set inside").add(judge, steps, limits_of(scene))
    text = " ".join(w for s in steps for w in s.warned)
    result.fine = "a" in text and "b" in text and "inside" in text
    result.figure = "warns, with names" if result.fine else f"warnings: {text or 'none'}"
    return result


@row("batch inside")
def batch_inside() -> Result:
    """A batch of four worlds, the third of which starts inside."""
    scene = Scene(
        (
            Thing("a", g.Box((0.2, 0.2, 0.2)), 1.0, (0, 0, 0.1)),
            Thing("b", g.Box((0.2, 0.2, 0.2)), 1.0, (0, 0, 0.5)),
        ),
        steps=3,
    )
    result = Result("batch inside")
    worlds = scene.world().batch(4)
    q = worlds.q.copy()
    q[2, 9] = 0.25
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        worlds.q = q
        worlds.step(1)
    text = " ".join(str(w.message) for w in caught)
    result.warned = [text] if text else []
    result.fine = "inside" in text and "2" in text
    result.figure = "warns, with world and names" if result.fine else f"warnings: {text or 'none'}"
    return result


ARM = """<mujoco><option timestep="2e-3"/><worldbody><geom name="ground" type="plane" size="5 5 1"/>
<body name="base" pos="0 0 0.05"><geom name="base" type="cylinder" size="0.08 0.05" mass="2"/>
<body name="one" pos="0 0 0.03"><joint name="j1" axis="0 0 1" damping="1"/>
<geom name="one" type="capsule" size="0.05" fromto="0 0 0.043 0 0 0.2" mass="1"/>
<body name="two" pos="0 0 0.25"><joint name="j2" axis="0 1 0" damping="1"/>
<geom name="two" type="capsule" size="0.04" fromto="0 0 0.05 0 0 0.3" mass="1"/>
</body></body></body></worldbody>{}</mujoco>"""


@row("permanent overlap")
def permanent_overlap() -> Result:
    """An arm whose base is 20 mm inside its first link."""
    result = Result("permanent overlap")
    path = Path(tempfile.mkdtemp()) / "arm.xml"
    path.write_text(ARM.format(""))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        world = kt.World.from_file(path)
        world.step(1)
    text = " ".join(str(w.message) for w in caught)
    excluded = ARM.format('<contact><exclude body1="base" body2="one"/></contact>')
    mj = mujoco.MjModel.from_xml_string(excluded)
    t = timed(world, mj, 400, 200)
    touching = [x for x in world.contacts().names if "base" in x]
    result.warned = [text] if text else []
    result.numbers = {"ratio": t.ratio}
    named = "base" in text and "one" in text
    result.fine = named and t.ratio < 2 and not touching
    result.figure = (
        f"{'named' if named else 'not named'} at load, {len(touching)} contacts left in, "
        f"{t.ratio:.1f} times mj_step with the pair excluded"
    )
    return result
