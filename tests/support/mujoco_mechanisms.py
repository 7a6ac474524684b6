"""Small mechanisms in MJCF, one for each thing that MJCF can say about dynamics."""

import mujoco
import numpy as np

from kinetree.interop import mujoco as M
from kinetree.loaders import loads
from support.quiet import without_warnings

_BOX = '<geom type="box" size=".1 .2 .3" pos=".1 -.05 .2" euler="10 20 30"/>'


def _world(inside, before="", after=""):
    return f"<mujoco>{before}<worldbody>{inside}</worldbody>{after}</mujoco>"


def _body(joints, inside=_BOX, attributes='pos=".1 .2 .3" euler="20 -30 40"', name="link"):
    return f'<body name="{name}" {attributes}>{joints}{inside}</body>'


def _on_arm(joints, inside=_BOX):
    """A body on a moving parent, so that every joint sees velocities and forces of both sides."""
    hinge = '<joint name="shoulder" axis="1 2 3" pos=".1 0 -.2"/>'
    child = _body(joints, inside + _body('<joint name="tip" axis="0 1 1"/>', name="tip_link"))
    return _body(hinge, _BOX + child, name="arm")


TREES = {
    "hinge": _world(_on_arm('<joint name="j" axis="1 0 2" pos=".3 .1 -.1"/>')),
    "slide": _world(_on_arm('<joint name="j" type="slide" axis="1 -1 0" pos=".3 .1 -.1"/>')),
    "ball": _world(_on_arm('<joint name="j" type="ball" pos=".3 .1 -.1"/>')),
    "free": _world(
        _body('<freejoint name="f"/>', _BOX + _body('<joint name="j" axis="0 1 0" pos="0 .1 0"/>'),
              name="trunk")
    ),
    "two free bodies": _world(
        _body('<freejoint/>', name="one") + _body('<joint type="free" damping="2"/>', name="two")
    ),
    "reference position": _world(
        _on_arm('<joint name="j" axis="1 0 2" pos=".3 .1 -.1" ref="30" range="-40 50" '
                'stiffness="3" springref="10"/>')
        + _body('<joint name="s" type="slide" ref=".2" springref=".5" stiffness="7"/>', name="sled")
    ),
    "several joints": _world(
        _on_arm('<joint name="a" axis="0 1 2" pos=".1 0 0"/>'
                '<joint name="b" type="slide" axis="1 0 1" pos="0 .2 0"/>'
                '<joint name="c" axis="1 1 0" pos="0 0 .3"/><joint name="d" axis="0 0 1"/>')
    ),
    "slides and ball": _world(
        _on_arm('<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
                '<joint type="ball" pos=".1 .2 .3"/>')
    ),
    "hinge before slide": _world(
        _on_arm('<joint axis="0 1 0" pos=".1 .2 .3"/><joint type="slide" axis="1 0 2"/>')
    ),
    "armature, damping, friction": _world(
        _on_arm('<joint name="j" axis="1 0 0" armature=".3" damping="2" frictionloss=".4" '
                'stiffness="5" springref="20"/>',
                _BOX + _body('<joint name="k" type="ball" armature=".2" damping=".7" '
                             'stiffness="1.5"/>', name="ball_link"))
    ),
    "nested defaults and classes": _world(
        _body('<joint name="a"/>', _BOX
              + _body('<joint name="b" class="stiff"/><joint name="c" class="inner"/>',
                      '<geom class="inner"/><geom class="stiff" pos=".1 0 0"/>'
                      + _body('<joint name="d"/>', "<geom/>", 'childclass="inner" pos="0 0 .4"',
                              "c2"),
                      'childclass="stiff" pos=".2 0 .1"', "c1"), name="c0"),
        before='<default><joint armature=".1" damping="1" axis="0 1 0"/>'
        '<geom type="sphere" size=".1"/>'
        '<default class="stiff"><joint stiffness="4" type="slide"/><geom size=".2"/>'
        '<default class="inner"><joint axis="1 0 0" type="hinge" pos=".1 0 0"/>'
        '<geom type="capsule" size=".05 .2" density="2000"/></default></default></default>',
    ),
    "static bodies": _world(
        '<body name="table" pos="0 0 1" euler="0 0 45"><geom type="box" size="1 1 .1"/>'
        + _on_arm('<joint name="j" axis="0 1 0"/>',
                  _BOX + _body("", _BOX + _body("", _BOX, name="camera"), name="bracket"))
        + "</body>"
    ),
    "fused static bodies": _world(
        _on_arm('<joint name="j" axis="0 1 0"/>', _BOX + _body("", _BOX, name="bracket")),
        before='<compiler fusestatic="true"/>',
    ),
    "diagonal inertia": _world(
        _on_arm('<joint name="j"/>',
                '<inertial pos=".1 .2 .3" euler="30 40 50" mass="2" diaginertia=".3 .4 .5"/>')
    ),
    "full inertia": _world(
        _on_arm('<joint name="j"/>',
                '<inertial pos=".1 .2 .3" mass="2" fullinertia=".3 .4 .5 .02 -.03 .04"/>')
    ),
    "inertia from geoms of every shape": _world(
        _on_arm('<joint name="j"/>',
                '<geom type="sphere" size=".1" density="500"/>'
                '<geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".05"/>'
                '<geom type="cylinder" size=".05 .2" mass="1.5" pos=".2 0 0"/>'
                '<geom type="ellipsoid" size=".1 .2 .3" axisangle="1 2 3 40"/>'
                '<geom type="box" size=".1 .1 .1" shellinertia="true" xyaxes="1 1 0 0 1 1"/>'
                '<geom type="mesh" mesh="wedge" zaxis="1 2 3"/>'),
        before='<asset><mesh name="wedge" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .5"/></asset>',
    ),
    "inertia from some groups": _world(
        _on_arm('<joint name="j"/>', _BOX + '<geom size=".3" group="2"/>'),
        before='<compiler inertiafromgeom="true" inertiagrouprange="0 1"/>',
    ),
    "radians and another order of Euler angles": _world(
        _on_arm('<joint name="j" axis="1 0 0" range="-1 2"/>').replace("20 -30 40", ".2 -.3 .4")
        .replace("10 20 30", ".1 .2 .3"),
        before='<compiler angle="radian" eulerseq="zYx"/>',
    ),
    "bounds and balance": _world(
        _on_arm('<joint name="j"/>',
                '<inertial pos="0 0 .1" mass="1e-4" diaginertia="1e-7 1e-7 5e-7"/>'),
        before='<compiler boundmass=".2" boundinertia=".01" balanceinertia="true"/>',
    ),
    "visual geoms discarded": _world(
        _on_arm('<joint name="j"/>', _BOX + '<geom size=".1" contype="0" conaffinity="0"/>'),
        before='<compiler discardvisual="true"/>',
    ),
    "frames": _world(
        '<frame pos="1 2 3" euler="10 20 30"><frame quat="1 1 0 0" childclass="x">'
        + _on_arm('<joint name="j" axis="0 1 0"/>') + "</frame></frame>",
        before='<default><default class="x"><joint armature=".1"/></default></default>',
    ),
    "replicate": _world(
        '<replicate count="3" offset=".5 0 0" euler="0 0 20">'
        + _body('<joint name="j" axis="0 1 0" pos="0 0 .1"/>', _BOX + '<site name="s"/>')
        + "</replicate>"
    ),
    "gravity switched off": _world(
        _on_arm('<joint name="j"/>'), before='<option><flag gravity="disable"/></option>'
    ),
    "gravity to the side": _world(_on_arm("<joint/>"), before='<option gravity="1 -2 3"/>'),
    "springs switched off": _world(
        _on_arm('<joint name="j" stiffness="5" damping="2" springref="20"/>'),
        before='<option><flag spring="disable"/></option>',
    ),
    "springdamper": _world(_on_arm('<joint name="j" springdamper=".5 1"/>')),
    "armature of an actuator": _world(
        _on_arm('<joint name="j" armature=".1" damping=".2"/>'),
        after='<actuator><motor joint="j" gear="3" armature=".02" damping=".1"/></actuator>',
    ),
}  # fmt: skip

_FINGER = _body(
    '<joint name="a" axis="0 1 0" ref="10"/>',
    _BOX + _body('<joint name="b" axis="1 1 0" springref="20"/>',
                 _BOX + _body('<joint name="c" type="slide" ref=".3"/>', name="tip"), name="rod"),
    name="crank",
)  # fmt: skip
_TENDONS = """<tendon>
  <fixed name="one" {}><joint joint="a" coef="1.5"/><joint joint="b" coef="-.4"/></fixed>
  <fixed name="two" {}><joint joint="b" coef=".7"/><joint joint="c" coef="2"/></fixed>
  <fixed name="three" {}><joint joint="c" coef="-.5"/></fixed>
</tendon>"""
TREES |= {
    "fixed tendons": _world(
        _FINGER,
        after=_TENDONS.format(
            'stiffness="20" springlength="-.1 .2" damping=".3"', 'stiffness="7" range="-3 3"',
            'damping=".2" limited="true" range="-1 2"'
        ),
    ),
    "gravity compensation": _world(
        _body("<joint/>", _BOX + _body("", attributes='pos="1 0 .2" gravcomp=".7"', name="hand"),
              attributes='pos=".1 .2 .3" euler="20 -30 40" gravcomp=".7"', name="one")
        + _body("<joint/>", attributes='pos="0 1 0" gravcomp="1.5"', name="other"),
    ),
}  # fmt: skip

CLOSED = {
    "connect": _world(
        _body('<joint name="a" axis="0 1 0"/>', _BOX
              + _body('<joint name="b" axis="0 1 0" pos=".1 0 0"/>', _BOX
                      + _body('<joint name="c" axis="0 1 0"/>', attributes='pos="1 0 -1"',
                              name="rocker"),
                      attributes='pos="1 0 0"', name="rod"),
              attributes="", name="crank"),
        after='<equality><connect name="pin" body1="rocker" anchor="-.7 .1 .3"/></equality>',
    ),
    "connect two bodies": _world(
        _body('<joint name="a" axis="0 1 0" pos=".1 0 0"/>', name="one")
        + _body('<joint name="b" type="ball" pos="0 .1 0"/>', attributes='pos="1 0 0"',
                name="other"),
        after='<equality><connect name="pin" body1="one" body2="other" anchor=".5 .1 .3"/>'
        "</equality>",
    ),
    "connect sites": _world(
        _body('<joint name="a" axis="0 1 0"/>', _BOX + '<site name="p" pos=".5 0 0"/>',
              attributes="", name="one")
        + _body('<freejoint/>', _BOX + '<site name="s" pos="-.5 0 0"/>', attributes='pos="1 0 0"',
                name="other"),
        after='<equality><connect site1="p" site2="s"/></equality>',
    ),
    "weld": _world(
        _body('<joint name="a" axis="0 1 0"/>', name="one")
        + _body('<freejoint/>', attributes='pos="1 0 0" euler="10 20 30"', name="other"),
        after='<equality><weld name="glue" body1="one" body2="other" anchor=".1 .2 .3"/>'
        "</equality>",
    ),
    "weld to the world": _world(
        _body('<joint name="a" axis="0 1 0"/>', _BOX
              + _body('<joint name="b" type="ball"/>', attributes='pos="0 0 1"', name="top"),
              name="one")
        + _body('<freejoint/>', attributes='pos="1 0 0" euler="10 20 30"', name="other"),
        after='<equality><weld name="glue" body1="other" anchor=".1 .2 .3"/></equality>',
    ),
    "weld sites": _world(
        _body('<joint name="a" axis="0 1 0"/>',
              _BOX + '<site name="p" pos=".5 0 0" euler="10 20 30"/>', attributes="", name="one")
        + _body('<freejoint/>', _BOX + '<site name="s" pos=".5 0 0" euler="10 20 30"/>',
                attributes="", name="other"),
        after='<equality><weld site1="p" site2="s"/></equality>',
    ),
    "joint": _world(
        _body('<joint name="a" axis="0 1 0" ref="10"/>', _BOX
              + _body('<joint name="b" type="slide" ref=".3"/>', name="rod"), name="crank"),
        after='<equality><joint name="gear" joint1="b" joint2="a" polycoef="0 2 -1 .5 .2"/>'
        "</equality>",
    ),
    "joint held": _world(
        _body('<joint name="a" axis="0 1 0" ref="10"/>', _BOX
              + _body('<joint name="b" axis="1 0 0"/>', name="rod"), name="crank"),
        after='<equality><joint joint1="b"/></equality>',
    ),
    "tendon": _world(
        _FINGER,
        after=_TENDONS.format("", "", "")
        + '<equality><tendon tendon1="one" tendon2="two" polycoef=".1 -2 0 0 0"/></equality>',
    ),
    "tendon held": _world(
        _FINGER,
        after=_TENDONS.format("", "", "")
        + '<equality><tendon tendon1="two" polycoef=".3 0 0 0 0"/></equality>',
    ),
    "tendon polynomial": _world(
        _FINGER,
        after=_TENDONS.format("", "", "")
        + '<equality><tendon tendon1="three" tendon2="one" polycoef="0 2 -1 .5 .2"/></equality>',
    ),
}  # fmt: skip


def peer(text):
    """MuJoCo's model of a text, without contact and other soft constraints, and its data."""
    mj_model = mujoco.MjSpec.from_string(text).compile()
    mj_model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return mj_model, mujoco.MjData(mj_model)


def loaded(text, **options):
    """Our model of a text, what it does not carry left unsaid."""
    return without_warnings(loads, text, "mjcf", **options)


def forward(mj_model, data, qpos, qvel, qacc=None):
    """Everything MuJoCo computes at a state."""
    data.qpos, data.qvel = qpos, qvel
    mujoco.mj_forward(mj_model, data)
    if qacc is not None:
        data.qacc = qacc
        mujoco.mj_inverse(mj_model, data)


def random_state(mj_model, rng):
    """Any position, velocity and acceleration, in MuJoCo's variables."""
    qpos = rng.uniform(-1, 1, mj_model.nq)
    mujoco.mj_normalizeQuat(mj_model, qpos)
    return qpos, *rng.standard_normal((2, mj_model.nv))


def mass_matrix(mj_model, data):
    """The full inertia matrix."""
    M = np.zeros((mj_model.nv, mj_model.nv))
    mujoco.mj_fullM(mj_model, data, M)
    return M


def driven_states(text, rng):
    """Our model and MuJoCo's with its data, in the same random state."""
    mj_model, model = mujoco.MjModel.from_xml_string(text), loaded(text)
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.qvel[:] = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
    data.ctrl[:] = rng.normal(size=mj_model.nu)
    mujoco.mj_forward(mj_model, data)
    return model, q, qd, mj_model, data
