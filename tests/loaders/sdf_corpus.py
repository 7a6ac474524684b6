"""SDF files with what strangers write: one small file for each way to be odd.

``FILES`` by name are read; ``REFUSED`` are those that have no reading, with a part of the message.
"""

INERTIAL = (
    "<inertial><pose>0 0 .1 0 0 0</pose><mass>2</mass><inertia><ixx>.1</ixx><iyy>.1</iyy>"
    "<izz>.05</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"
)
AXIS = "<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis>"
BOX = "<box><size>1 1 1</size></box>"


def make(inside="", *, inertial=INERTIAL, axis=AXIS, joint="revolute", more="", begin="") -> str:
    """A model of two links and a joint.

    Args:
        inside: what else the second link has;  inertial: its inertia.
        axis: what is in the joint;  joint: its type.
        more: other elements of the model.
        begin: what the file begins with, in place of ``<sdf>``.
    """
    links = f'<link name="a"/><link name="b">{inertial}{inside}</link>'
    ends = "<parent>a</parent><child>b</child>"
    between = f'<joint name="j" type="{joint}">{ends}{axis}</joint>'
    begin = begin or '<?xml version="1.0"?><sdf version="1.9">'
    return f'{begin}<model name="m">{links}{between}{more}</model></sdf>'


JOINT = make()[make().index("<joint") : make().index("</model")]


def shown(shape=BOX, more="", kind="visual") -> str:
    """A visual, or a collision."""
    return f'<{kind} name="v"><geometry>{shape}</geometry>{more}</{kind}>'


def material(color) -> str:
    """A visual with a material."""
    return make(shown(more=f"<material>{color}</material>"))


def touching(friction) -> str:
    """A collision with this coefficient of friction."""
    surface = f"<surface><friction><ode><mu>{friction}</mu></ode></friction></surface>"
    return make(shown(more=surface, kind="collision"))


SHAPES = {
    "two shapes": BOX + BOX,
    "size of two": "<box><size>1 1</size></box>",
    "size in words": "<box><size>big</size></box>",
    "size with commas": "<box><size>1, 1, 1</size></box>",
    "radius of zero": "<sphere><radius>0</radius></sphere>",
    "radius below zero": "<sphere><radius>-1</radius></sphere>",
    "mesh that is missing": "<mesh><uri>nope.stl</uri></mesh>",
    "mesh elsewhere": "<mesh><uri>https://example.org/a.stl</uri></mesh>",
    "mesh without uri": "<mesh/>",
    "mesh scale of two": "<mesh><uri>nope.stl</uri><scale>1 1</scale></mesh>",
    "package that is missing": "<mesh><uri>model://nope/a.dae</uri></mesh>",
    "normal of zero": "<plane><normal>0 0 0</normal></plane>",
    "heightmap": "<heightmap><uri>x.png</uri></heightmap>",
    "shape unknown": "<torus/>",
}
"""Oddities of the shapes of visuals; collisions have the same."""
POSES = {
    "pose of three": "<pose>0 0 1</pose>",
    "pose of seven": "<pose>0 0 1 0 0 0 1</pose>",
    "pose in words": "<pose>up</pose>",
    "pose on an unknown frame": '<pose relative_to="nope">0 0 0 0 0 0</pose>',
}
PICTURES = {
    **{f"{k}: {n}": make(shown(x, kind=k)) for k in ("visual", "collision")
       for n, x in SHAPES.items()},
    **{f"{k}: {n}": make(shown(more=x, kind=k)) for k in ("visual", "collision")
       for n, x in POSES.items()},
    "second material": make(shown(more="<material/><material/>")),
    "colour of five": material("<ambient>1 0 0 1 1</ambient>"),
    "colour in words": material("<diffuse>red</diffuse>"),
    "transparency in words": make(shown(more="<transparency>some</transparency>")),
    "friction in words": touching("slippery"),
    "friction without end": touching("inf"),
    "sensor with an odd pose": make('<sensor name="s" type="imu"><pose>1 2</pose></sensor>'),
    "sensor unknown": make('<sensor name="s" type="smell"/>'),
    "light": make(more='<light name="l" type="point"><pose>a</pose></light>'),
    "plugin": make(more='<plugin name="p" filename="x.so"><joint>nope</joint></plugin>'),
    "description": make(more="<description>nuts &amp; bolts</description>"),
    "ampersand": make(more="<description>nuts & bolts</description>"),
    "version 0.0 of XML": make(begin='<?xml version="0.0"?><sdf version="1.9">'),
    "newer version": make(begin='<sdf version="2.3">'),
    "type in capitals": make(joint="Revolute"),
    "axis that is not there": make(axis=AXIS + AXIS.replace("axis", "axis2")),
}  # fmt: skip
"""What bears on pictures, contact, control or settings, and on nothing else."""

MOTION = {
    "second axis": make(axis=AXIS + AXIS.replace("0 1 0", "1 0 0")),
    "axis of four": make(axis=AXIS.replace("0 1 0", "0 1 0 0")),
    "second mass": make(inertial=INERTIAL.replace("</mass>", "</mass><mass>3</mass>")),
    "second inertial": make(inertial=INERTIAL + INERTIAL.replace("2<", "3<")),
    "limits that are swapped": make(axis=AXIS.replace("<lower>-1", "<lower>2")),
    "damping below zero": make(axis=AXIS.replace(
        "<limit>", "<dynamics><damping>-1</damping></dynamics><limit>")),
    "unknown element of a link": make("<foo>1</foo>"),
    "mimics nothing": make(axis=AXIS.replace(
        "<limit>", '<mimic joint="nope"><multiplier>1</multiplier></mimic><limit>')),
}  # fmt: skip
"""What is read with a notice that it may bear on the motion."""

QUIET = {
    "plain": make(),
    "axis of another length": make(axis=AXIS.replace("0 1 0", "0 2 0")),
    "blanks around names": make().replace("<child>b</child>", "<child> b </child>"),
    "limit as no limit": make(axis=AXIS.replace("-1<", "-1e16<")),
    "inertia without ixy": make(inertial=INERTIAL.replace("<ixy>0</ixy>", "")),
    "byte order mark": "\ufeff" + make(),
    "no declaration": make(begin='<sdf version="1.9">'),
}
"""What is read without a notice."""

REFUSED = {
    "no version": (make(begin="<sdf>"), "attribute 'version' is missing"),
    "axis of zero": (make(axis=AXIS.replace("0 1 0", "0 0 0")), "axis must not be zero"),
    "limit in words": (make(axis=AXIS.replace("-1<", "low<")), "must hold numbers, got 'low'"),
    "type unknown": (make(joint="elastic"), "unknown joint type 'elastic'"),
    "joint twice": (make(more=JOINT), "is taken"),
    "child unknown": (make().replace("<child>b", "<child>z"), "there is no frame 'z' here"),
    "mass with a unit": (make(inertial=INERTIAL.replace("2<", "2 kg<")), "must be a number"),
    "pose of the mass": (make(inertial=INERTIAL.replace("0 0 .1 0 0 0", "0 0")), "6 numbers"),
    "static or not": (make(more="<static>maybe</static>"), "must be true or false"),
    "included file missing": (make(more="<include><uri>model://nope</uri></include>"), "nope"),
    "shape that has the mass": (make(shown("<box><size>1</size></box>", kind="collision"),
                                     inertial='<inertial auto="true"/>'), "3 numbers"),
    "junk after the end": (make() + "junk", "not well-formed"),
}  # fmt: skip
FILES = PICTURES | MOTION | QUIET
