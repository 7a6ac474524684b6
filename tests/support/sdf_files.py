"""SDF texts for tests, and what they mean."""

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.loaders import loads, read


def sdf(body, version="1.9"):
    """A file with this inside."""
    return f'<sdf version="{version}">{body}</sdf>'


def model(body, version="1.9", name="robot", attributes=""):
    return sdf(f'<model name="{name}" {attributes}>{body}</model>', version)


def link(name, pose=None, relative_to=None, mass=1.0, more=""):
    to = f' relative_to="{relative_to}"' if relative_to else ""
    where = f"<pose{to}>{pose}</pose>" if pose else ""
    inertia = "<ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz>"
    inertial = f"<inertial><mass>{mass}</mass><inertia>{inertia}</inertia></inertial>"
    return f'<link name="{name}">{where}{inertial}{more}</link>'


def joint(name, kind, parent, child, more=""):
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{more}</joint>'


def axis(xyz="0 0 1", more="", expressed_in=None, tag="axis"):
    to = f' expressed_in="{expressed_in}"' if expressed_in else ""
    return f"<{tag}><xyz{to}>{xyz}</xyz>{more}</{tag}>"


def load(text, **options):
    return loads(text, "sdf", name="robot.sdf", **options)


def notices(text, tmp_path, name="robot.sdf", **options):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return [f"{n.line}: {n.what}: {n.why}" for n in read(path, **options).notices]


def poses(m, q=None):
    """World poses, 4x4, of every body and frame."""
    q = m.neutral() if q is None else q
    X = base_transforms(m, joint_transforms(m, np.asarray(q, dtype=float))[0])
    found = {name: X[i].to_pose() for i, name in enumerate(m.body_names) if i}
    found[m.base_name] = np.eye(4)
    for f in m.frames:
        carrier = X[f.body].to_pose() if f.body else np.eye(4)
        found[f.name] = carrier @ f.placement.to_pose()
    return found


def links(m, q=None):
    """World poses of the links, as the file means them."""
    found = poses(m, q)
    return {n: found.get(f"{n}_link", x) for n, x in found.items() if not n.endswith("_link")}
