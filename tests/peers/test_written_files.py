"""Every model, written in every format, loads again: here, in MuJoCo and in Pinocchio.

Mass matrices are compared by the names of joints, without armature, which not every format holds,
and without loops and couplings, which the programs treat differently. ``make test`` walks over the
samples, ``make fuzz`` over every robot of an installed package.
"""

import importlib.util
import os
import warnings

import mujoco
import numpy as np
import pinocchio as pin

import kinetree as kt

FORMATS = (".urdf", ".sdf", ".xml", ".toml", ".json")
USD = (".usda",) if importlib.util.find_spec("pxr") else ()  # of samples in test_usd.py
REFUSALS = (
    "which URDF cannot express", "which SDF cannot express", "which is all that <mimic> of",
    "how SDF shows a mechanism", "links of SDF float in the world", "MJCF can close loops with",
    "which MJCF does not have", "has no mass, which MuJoCo does not allow",
    "which MuJoCo does not allow; give it mass", "MuJoCo does not load such a body",
    "which the format for writing by hand has no word for", "which is all that URDF can say",
    "SDF cannot express a model without links", "massless bodies between them",
    "USD has no coupling of joints such as",
)  # fmt: skip
"""Reasons not to write a model, each of which names what the format or program cannot hold."""


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        pairs = [(f"samples:{n}", x) for n in kt.samples.names() for x in FORMATS]
        if metafunc.config.getoption("--hypothesis-profile") == "fuzz":
            robots = [f"robots:{robot.full_name}" for robot in kt.robots.available()]
            pairs += [(n, x) for n in robots for x in (*FORMATS, *USD)]
        metafunc.parametrize(("name", "suffix"), pairs)


def model_of(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        is_sample = name.startswith("samples:")
        return kt.samples.load(name.removeprefix("samples:")) if is_sample else kt.load(name)


def bare(model):
    """Every joint of a model, independent of the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.spanning_tree.uncoupled


def hinges(model):
    """Joints with one variable by name, and where that is among the velocities."""
    joints = zip(model.joint_names, model.joint[1:], model.v_slice[1:], strict=True)
    return {name: v.start for name, joint, v in joints if joint.nq == joint.nv == 1}


def angles_of(model):
    rng = np.random.default_rng(5)
    return {name: rng.uniform(-0.4, 0.4) for name in hinges(model)}


def ours(model, angles, names):
    """Block of the mass matrix for these joints, without armature."""
    q = model.neutral()
    for name, angle in angles.items():
        if name in names:
            q[model.q_indices(name)] = angle
    armature = np.zeros(model.nv)
    for body, v in zip(model.bodies, model.v_slice[1:], strict=True):
        if body.dynamics is not None and len(np.atleast_1d(body.dynamics.armature)):
            armature[v] = body.dynamics.armature
    places = [hinges(model)[name] for name in names]
    return (kt.mass_matrix(model, q) - np.diag(armature))[np.ix_(places, places)]


def of_mujoco(path, angles, names):
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    joints = [model.joint(name) for name in names]
    for joint in joints:
        data.qpos[joint.qposadr[0]] = angles[joint.name]
    mujoco.mj_forward(model, data)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    places = [joint.dofadr[0] for joint in joints]
    return (full - np.diag(model.dof_armature))[np.ix_(places, places)]


def of_pinocchio(path, angles, names):
    model = pin.buildModelFromUrdf(str(path))
    q, data = pin.neutral(model), model.createData()
    places = []
    for name in names:
        joint = model.joints[model.getJointId(name)]
        angle = angles[name]
        q[joint.idx_q : joint.idx_q + joint.nq] = (
            angle if joint.nq == 1 else (np.cos(angle), np.sin(angle))
        )
        places.append(joint.idx_v)
    upper = np.triu(pin.crba(model, data, q))
    full = upper + np.triu(upper, 1).T - np.diag(model.armature)
    return full[np.ix_(places, places)]


def common(model, names, renamed=()):
    """Joints of a file that are ours, by name; what is missing must have been said."""
    wanted = [name for name in hinges(model) if name not in renamed]
    missing = [name for name in wanted if name not in names]
    assert not missing, f"joints that are not in the file: {missing}"
    return wanted


def compare(found, expected):
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-9)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * scale)


def written(model, path):
    """What ``save`` warns of, or None where it says why it does not write the model."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            kt.save(model, path)
        except kt.KinetreeError as refusal:
            reason = str(refusal)
            if not any(known in reason for known in REFUSALS):
                raise
            return None
    return "\n".join(str(w.message) for w in caught)


def test_written_files_load_again(name, suffix, tmp_path):
    model = model_of(name)
    path = tmp_path / f"robot{suffix}"
    said = written(model, path)
    if said is None:
        return
    meshes = [g.shape.path for g in model.geometry if isinstance(g.shape, kt.geometry.Mesh)]
    folders = {os.path.dirname(mesh) for mesh in meshes if os.path.isabs(mesh)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        again = kt.load(path, folders=sorted(folders))
    one, other = bare(model), bare(again)
    if set(again.loop_names) & set(hinges(one)):  # loops are open at other joints there
        return
    renamed = [name for name in hinges(one) if f"{name} is {name}_" in said]
    angles = angles_of(one)
    if "more)" in said:  # of the names that changed, a few are listed
        renamed = [name for name in hinges(one) if name not in hinges(other)]
    names = common(one, hinges(other), renamed)
    compare(ours(other, angles, names), ours(one, angles, names))
    order = [name for name in other.joint_names if name in names]
    if order != [name for name in one.joint_names if name in names]:
        assert "the file has its joints in another order" in said
    if suffix == ".xml":
        compare(of_mujoco(path, angles, names), ours(one, angles, names))
    if suffix == ".urdf":
        compare(of_pinocchio(path, angles, names), ours(one, angles, names))
