"""Small URDF texts, and what reading them gives."""

import kinetree as kt
from kinetree.loaders import Report, loads
from kinetree.loaders.load import Options
from kinetree.loaders.paths import Folders
from kinetree.loaders.urdf import read_urdf

MASS = (
    "<inertial><mass value='2'/>"
    "<inertia ixx='0.1' iyy='0.2' izz='0.25' ixy='0.01' ixz='0' iyz='0'/></inertial>"
)


def link(name, inside=MASS):
    return f"<link name='{name}'>{inside}</link>\n"


def joint(name, parent, child, kind="revolute", inside="<limit lower='-1' upper='1'/>"):
    ends = f"<parent link='{parent}'/><child link='{child}'/>"
    return f"<joint name='{name}' type='{kind}'>{ends}{inside}</joint>\n"


def robot(*parts, attributes=""):
    return f"<robot name='r' {attributes}>\n{''.join(parts)}</robot>\n"


def arm(kind="revolute", inside="<limit lower='-1' upper='1'/>", *more):
    """A base, a link on one joint, and whatever else."""
    return robot(link("base", ""), link("tip"), joint("j", "base", "tip", kind, inside), *more)


def read(text, *, floating_base=False, lump=True, strict=False, folders=None):
    """The model and the notices as text, without a warning."""
    report = Report("r.urdf")
    options = Options(floating_base, lump, strict)
    model = read_urdf(text.encode(), report, folders or Folders(None), options)
    return model, [str(notice) for notice in report.in_order()]


def quietly(text, **options):
    """The model of a text in which nothing is left out."""
    model, notices = read(text, **options)
    assert notices == []
    return model


def loud(text, **options):
    return loads(text, "urdf", name="r.urdf", **options)


def read_as_file(folder, text, ending="urdf"):
    """The model of a text as a file, and the notices."""
    path = folder / f"r.{ending}"
    path.write_bytes(text.encode())
    loaded = kt.loaders.read(path)
    return loaded.model, loaded.notices
