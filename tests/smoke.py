"""A short look at everything, for environments that are not the one of the tests.

``make pythons`` runs it with other Pythons and other versions of what kinetree builds on. It needs
kinetree alone; each extra that is named as an argument must be installed and is tried, too:

    python tests/smoke.py plot view
"""

import io
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from support.public_calls import FUNCTIONS, States, converted, leaves

import kinetree as kt

ULPS = 1000 * np.finfo(float).eps
MODEL = kt.samples.double_pendulum()


def close(a, b, scale=1.0):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=ULPS, atol=scale * ULPS)


# --- what needs no extra ---------------------------------------------------------------------


def every_function_single_and_batched():
    """What a sample gives alone is what it gives in a batch."""
    states = States(MODEL, 3, np.random.default_rng(1))
    for function in FUNCTIONS.values():
        given = states.arguments(function)
        whole = leaves(function(MODEL, **given))
        if function is kt.task_freedom:  # of one configuration
            continue
        first = converted(given, lambda x: np.array(x[0], order="C"))
        for _ in range(2):  # the second call takes the lean path
            for part, one in zip(whole, leaves(function(MODEL, **first)), strict=True):
                close(one, part[0], np.max(np.abs(part), initial=1.0))


def a_simulation():
    motion = kt.simulate(MODEL, [0.5, -0.2], duration=0.5, dt=1e-3)
    assert abs(motion.energy[-1] - motion.energy[0]) < 1e-8
    return motion


URDF = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
<origin xyz="0 0 -0.5"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
</link><joint name="j" type="continuous"><parent link="base"/><child link="a"/>
<axis xyz="0 1 0"/></joint></robot>"""
SDF = """<sdf version="1.9"><model name="r"><link name="a"><inertial><mass>1</mass>
<pose>0 0 -0.5 0 0 0</pose><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>
</link><joint name="j" type="revolute"><parent>world</parent><child>a</child>
<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""
DH = """# convention: standard
joint,type,a,alpha[deg],d,theta,mass,com,inertia
j,revolute,1,0,0,q1,1,-0.5 0 0,0.1 0.1 0.1
"""


def every_format():
    """A pendulum of 1 kg, 0.5 m below its joint, in files; in DH tables it turns about z."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("r.urdf", URDF), ("r.sdf", SDF), ("r.csv", DH)):
            (Path(folder) / name).write_text(text, encoding="utf-8")
            close(kt.mass_matrix(kt.load(Path(folder) / name), [0.3]), [[0.35]])
        model = kt.load(Path(folder) / "r.urdf")
        for suffix in (".toml", ".json", ".urdf"):
            kt.save(model, Path(folder) / f"again{suffix}")
            close(kt.mass_matrix(kt.load(Path(folder) / f"again{suffix}"), [0.3]), [[0.35]])


def a_page():
    assert "<canvas" in kt.viewer.embedded(MODEL).text


ALWAYS = (
    every_function_single_and_batched, a_simulation, every_format, a_page,
)  # fmt: skip


# --- extras ----------------------------------------------------------------------------------


def swing(model, start):
    return {"end": kt.simulate(model, start, duration=0.02, dt=1e-2).q[-1]}


def cli():
    from typer.testing import CliRunner

    from kinetree.cli.app import app

    for arguments in (["info", "double_pendulum"], ["check", "double_pendulum"], ["--help"]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output


def cluster():
    import distributed

    settings = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    starts = {"start": np.array([[0.1, 0.2], [0.3, 0.4]])}
    with (
        distributed.LocalCluster(**settings, dashboard_address=None) as here,
        distributed.Client(here) as client,
    ):
        found = kt.sweep(MODEL, swing, samples=starts, client=client)
    assert not found.failed
    close(found["end"], kt.sweep(MODEL, swing, samples=starts, threads=1)["end"])


def contact():
    """SciPy and trimesh find the hull of a mesh."""
    from support.contact_scenes import two_bodies, wedge_in

    from kinetree.model.geometry import Ellipsoid

    with tempfile.TemporaryDirectory() as folder:
        for shape, gap in ((Ellipsoid((0.3, 0.2, 0.2)), 0.4), (wedge_in(Path(folder)), 0.8)):
            model = two_bodies(Ellipsoid((0.3, 0.2, 0.2)), shape)
            q = model.neutral()
            q[model.q_slice[2]][:3] = (1.0 if gap == 0.4 else 1.1, 0.0, 0.0)
            found = kt.contact.Scene(model).contacts(q, margin=2.0)
            assert abs(np.min(found.gap) - gap) < 1e-6, found.gap


def decomposition():
    """CoACD splits a concave mesh."""
    import trimesh

    outline = [(0, 0), (2, 0), (2, 2), (1.8, 2), (1.8, 0.2), (0, 0.2)]
    bowl = trimesh.creation.revolve(outline, sections=4)
    with tempfile.TemporaryDirectory() as folder:
        bowl.export(path := str(Path(folder) / "bowl.stl"))
        shape = kt.geometry.Geometry(1, kt.geometry.Mesh(path))
        model = kt.edit.decompose(MODEL.replace(geometry=(shape,)), threshold=0.3)
        assert len(model.geometry) >= 2


def jax():
    import jax
    import jax.numpy as jnp

    q = jnp.array([0.1, 0.2])
    gradient = jax.jit(jax.grad(lambda q: kt.potential_energy(MODEL, q)))(q)
    np.testing.assert_allclose(gradient, kt.gravity_force(MODEL, [0.1, 0.2]), rtol=1e-4)


def torch():
    import torch

    q = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
    kt.potential_energy(MODEL, q).backward()
    close(q.grad, kt.gravity_force(MODEL, [0.1, 0.2]), 10)


def mcap():
    from mcap.reader import make_reader

    motion = a_simulation()
    with tempfile.TemporaryDirectory() as folder:
        data = motion.save(Path(folder) / "m.mcap").read_bytes()
    summary = make_reader(io.BytesIO(data)).get_summary()
    topics = {c.id: c.topic for c in summary.channels.values()}
    counts = summary.statistics.channel_message_counts
    assert {topics[k]: n for k, n in counts.items()}["/joint_states"] == len(motion.t)


def mesh(suffixes=("stl", "obj", "ply")):
    import trimesh

    with tempfile.TemporaryDirectory() as folder:
        for suffix in suffixes:
            trimesh.creation.box((1, 2, 3)).export(Path(folder) / f"box.{suffix}")
            shape = f'<visual><geometry><mesh filename="box.{suffix}"/></geometry></visual>'
            path = Path(folder) / "r.urdf"
            path.write_text(URDF.replace('<link name="a">', f'<link name="a">{shape}'))
            drawn = kt.viewer.scene(kt.load(path))
            assert not drawn.notices, drawn.notices
            assert any(len(part.surface.faces) >= 12 for part in drawn.parts)


def learning():
    """Many worlds as an environment of Gymnasium."""
    env = kt.learning.gymnasium_env(_environment())
    env.reset(seed=1)
    seen, reward, *_ = env.step(np.zeros(env.action_space.shape, np.float32))
    assert seen.shape == (4, 2)
    assert np.isfinite(reward).all()


def sb3():
    import stable_baselines3

    env = kt.learning.sb3_env(_environment())
    stable_baselines3.PPO("MlpPolicy", env, n_steps=8, batch_size=32, device="cpu").learn(32)


def rsl_rl():
    env = kt.learning.rsl_rl_env(_environment(arrays="torch"))
    assert env.get_observations()["policy"].shape == (4, 2)


def _environment(**options):
    """Four pendulums that are pushed."""

    @kt.kernel
    def observe(m, q, qd):
        return np.array([q[0], qd[0]])

    @kt.kernel
    def reward(m, q):
        return np.cos(q[0])

    @kt.kernel
    def reset(m, uniform: (1,)):
        return {"q": uniform}

    kernels = {"observe": observe, "reward": reward, "reset": reset}
    return kt.learning.Environment(
        kt.samples.pendulum(), 4, dt=0.01, episode=8, **kernels, **options
    )


def mjcf():
    import mujoco

    from kinetree.interop import mujoco as M

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.xml"
        kt.save(kt.loads(URDF, "urdf"), path)
        close(kt.mass_matrix(kt.load(path), [0.3]), [[0.35]])
    theirs = M.to_model(MODEL)
    data = mujoco.MjData(theirs)
    q, qd = np.array([0.3, -0.8]), np.array([1.0, 2.0])
    data.qpos, data.qvel = M.to_q(MODEL, theirs, q), M.to_v(MODEL, theirs, q, qd)
    mujoco.mj_forward(theirs, data)
    close(
        M.from_tau(MODEL, theirs, data.qpos, data.qfrc_bias), kt.bias_force(MODEL, q, qd), scale=10
    )


def plot():
    motion = a_simulation()
    for figure in (motion.plot(), kt.plot.tree(MODEL), kt.plot.energy(motion)):
        figure = getattr(figure, "figure", figure)
        figure.canvas.draw()


def pinocchio():
    import pinocchio as pin

    from kinetree.interop import pinocchio as P

    theirs = P.to_model(MODEL)
    q = np.array([0.3, -0.8])
    again = P.from_model(theirs)
    M = pin.crba(theirs, theirs.createData(), P.to_q(MODEL, theirs, q))
    close(np.triu(M), np.triu(kt.mass_matrix(again, q)), 10)


def qp():
    """DAQP finds the accelerations of a pendulum that must not exceed a torque."""
    posture, most = kt.control.PostureTask([1.0, 0.5], kp=50.0), np.array([8.0, 1.0])
    state = np.array([0.2, 0.1]), np.array([0.3, 0.4])
    free = kt.control.WholeBody(
        MODEL, [posture], torque_limits=False, joint_limits=False, acceleration_weight=1e-12
    )
    close(free(0.0, *state), kt.control.ComputedTorque(MODEL, [1.0, 0.5], 50.0)(0.0, *state), 1e6)
    weak = kt.control.WholeBody(MODEL, [posture], torque_limits=most)(0.0, *state)
    assert np.all(np.abs(weak) <= most + 1e-6)


def symbolic():
    kt.equations_of_motion(kt.samples.pendulum())


def tables():
    motion = a_simulation()
    assert len(motion.to_pandas()) == len(motion.t)
    motion.to_xarray()
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".parquet", ".nc", ".npz"):
            motion.save(Path(folder) / f"m{suffix}")
            close(kt.Trajectory.load(Path(folder) / f"m{suffix}").q, motion.q)


def view():
    """A live page, a picture, a film, and a mesh of each format that robots bring."""
    motion = kt.simulate(MODEL, [0.5, -0.2], duration=0.1, dt=1e-2)
    with kt.view(motion, open=False) as viewer:
        viewer.pose([0.2, 0.3])
    with tempfile.TemporaryDirectory() as folder:
        eye = kt.camera((2, -2, 1), (0, 0, 0), size=(32, 24))
        seen = kt.render(MODEL, None, eye, ("color", "depth"))
        assert seen["color"].shape == (24, 32, 3)
        assert np.isfinite(seen["depth"]).any()
        image = kt.viewer.picture(MODEL, Path(folder) / "p.png", size=(64, 48))
        assert image.shape == (48, 64, 3)
        for suffix in (".mp4", ".gif"):
            film = kt.viewer.record(motion, Path(folder) / f"m{suffix}", size=(64, 48), rate=10)
            assert film.stat().st_size > 0
    mesh(("stl", "obj", "dae"))


def usd():
    """A robot goes to USD and back."""
    arm = kt.samples.ur5()
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", kt.ModelWarning)  # its postures stay behind
        again = kt.load(kt.save(arm, Path(folder) / "ur5.usda"))
    q = np.full(6, 0.3)
    assert np.abs(kt.mass_matrix(again, q) - kt.mass_matrix(arm, q)).max() < 1e-12


EXTRAS = {
    f.__name__.replace("_", "-"): f
    for f in (
        cli, cluster, contact, decomposition, jax, learning, mcap, mesh, mjcf, pinocchio, plot, qp,
        rsl_rl, sb3, symbolic, tables, torch, usd, view,
    )
}  # fmt: skip


def main(extras):
    if unknown := set(extras) - set(EXTRAS):
        sys.exit(f"tests/smoke.py does not try {', '.join(sorted(unknown))}; add a function for it")
    os.environ.setdefault("MPLBACKEND", "agg")
    for check in (*ALWAYS, *(EXTRAS[name] for name in extras)):
        start = time.perf_counter()
        check()
        name = check.__name__.replace("_", " ")
        print(f"  {name:40s} {time.perf_counter() - start:6.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
