"""The same robot as URDF and as SDF is the same mechanism; and Cassie, with its loops and gears."""

import numpy as np
import pytest
from lxml import etree
from support.closeness import assert_close
from support.example_robots import ROOT
from support.quiet import without_warnings
from support.sdf_files import links, poses

from kinetree.algorithms import crba, rnea
from kinetree.loaders import load, loads

ROBOTS = {
    "kinova": "kinova_description/robots/kinova.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
}
CASSIE = ["cassie", "cassie_v2", "cassie_reduced", "cassie_simple", "cassie_wo_gearbox_spring"]


def as_sdf(urdf, base):
    """A URDF element for element: joints are placed on parents, links on joints."""
    above = {j.find("child").get("link"): j for j in urdf.findall("joint")}
    root = next(n.get("name") for n in urdf.findall("link") if n.get("name") not in above)
    out = [f"<sdf version='1.11'><model name='robot' canonical_link='{root}'>"]
    for link in urdf.findall("link"):
        name = link.get("name")
        out.append(f"<link name='{name}'>")
        if name in above:
            out.append(f"<pose relative_to='{above[name].get('name')}'/>")
        out += [_inertial(link), "</link>"]
        if name not in above and base:
            out.append(f"<joint name='{base}' type='fixed'><parent>world</parent><child>{name}")
            out.append("</child></joint>")
    for joint in urdf.findall("joint"):
        parent = joint.find("parent").get("link")
        out.append(f"<joint name='{joint.get('name')}' type='{joint.get('type')}'>")
        out.append(f"<pose relative_to='{parent}'>{_pose(joint)}</pose><parent>{parent}</parent>")
        out.append(f"<child>{joint.find('child').get('link')}</child>")
        if joint.get("type") != "fixed":
            axis = joint.find("axis")
            xyz = "1 0 0" if axis is None else axis.get("xyz")
            mimic = joint.find("mimic")
            out.append(f"<axis><xyz>{xyz}</xyz>{'' if mimic is None else _mimic(mimic)}</axis>")
        out.append("</joint>")
    return "\n".join([*out, "</model></sdf>"])


def _pose(element):
    origin = element.find("origin")
    if origin is None:
        return "0 0 0 0 0 0"
    return f"{origin.get('xyz', '0 0 0')} {origin.get('rpy', '0 0 0')}"


def _inertial(link):
    inertial, keys = link.find("inertial"), ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    values = dict.fromkeys(keys, "0") if inertial is None else inertial.find("inertia").attrib
    mass = "0" if inertial is None else inertial.find("mass").get("value")
    inside = "".join(f"<{k}>{values[k]}</{k}>" for k in keys)
    pose = "" if inertial is None else f"<pose>{_pose(inertial)}</pose>"
    return f"<inertial>{pose}<mass>{mass}</mass><inertia>{inside}</inertia></inertial>"


def _mimic(mimic):
    inside = "".join(
        f"<{k}>{mimic.get(k)}</{k}>" for k in ("multiplier", "offset") if mimic.get(k) is not None
    )
    return f"<mimic joint='{mimic.get('joint')}'>{inside}</mimic>"


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", ROBOTS)
def test_urdf_and_sdf_give_the_same_robot(name, floating, rng):
    path = ROOT / ROBOTS[name]
    urdf = without_warnings(load, path, floating_base=floating)
    tree = etree.parse(str(path), etree.XMLParser(remove_comments=True)).getroot()
    sdf = without_warnings(loads, as_sdf(tree, "" if floating else "anchor"), "sdf")
    theirs, ours = _names(urdf), _names(sdf)
    assert set(theirs) == set(ours)
    assert len(urdf.couplings) == len(sdf.couplings)
    q, qd, qdd = urdf.random_configuration(rng), *rng.standard_normal((2, urdf.nv))
    x, (v, a) = np.zeros(sdf.nq), np.zeros((2, sdf.nv))
    columns = np.zeros(sdf.nv, dtype=int)
    for joint, i in theirs.items():
        j = ours[joint]
        x[sdf.q_slice[j]] = q[urdf.q_slice[i]]
        for mine, given in ((v, qd), (a, qdd), (columns, np.arange(urdf.nv))):
            mine[sdf.v_slice[j]] = given[urdf.v_slice[i]]
    H = crba.joint_space_inertia(urdf, q)
    assert_close(crba.joint_space_inertia(sdf, x), H[np.ix_(columns, columns)], ulps=2000)
    tau = rnea.inverse_dynamics(urdf, q, qd, qdd)
    assert_close(rnea.inverse_dynamics(sdf, x, v, a), tau[columns], ulps=2000)


def _names(model):
    free = {"root_joint", model.joint_names[0]} if model.joint[1].nv == 6 else set()
    return {"free" if n in free else n: i for i, n in enumerate(model.joint_names, start=1)}


@pytest.mark.parametrize("name", CASSIE)
def test_links_of_cassie_are_where_the_file_puts_them(name):
    """SDF 1.6: every pose is in the frame of the model, which makes an independent check."""
    path = ROOT / "cassie_description/robots" / f"{name}.sdf"
    m = without_warnings(load, path)
    q = m.postures[0].q if m.postures else m.neutral()
    places = links(m, q)
    count = 0
    for link in etree.parse(str(path)).getroot().find("model").findall("link"):
        pose = link.find("pose")
        x = [0.0] * 6 if pose is None else [float(word) for word in pose.text.split()]
        np.testing.assert_allclose(places[link.get("name")][:3, 3], x[:3], atol=1e-12)
        count += 1
    assert count > 20


@pytest.mark.parametrize("name", CASSIE)
def test_loops_of_cassie_are_closed_as_the_file_says(name):
    m = without_warnings(load, ROOT / "cassie_description/robots" / f"{name}.sdf")
    q = m.postures[0].q if m.postures else m.neutral()
    places = poses(m, q)
    assert m.loops
    for loop in m.loops:
        ends = []
        for body, X in (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        ):
            ends.append(places[m.body_names[body]] @ X.to_pose())
        np.testing.assert_allclose(ends[0][:3, 3], ends[1][:3, 3], atol=1e-12)


def test_gearboxes_of_cassie_are_couplings():
    m = without_warnings(load, ROOT / "cassie_description/robots/cassie.sdf")
    found = {c.name: c.coefficients for c in m.couplings}
    assert len(found) == 10
    assert found["left-roll-joint"] == (0.0, -0.04)
    springs = [b.joint_name for b in m.bodies if b.dynamics and b.dynamics.stiffness]
    assert len(springs) == 4
