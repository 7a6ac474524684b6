"""Closed loops in rigid contact: rows from tables, and large nets of loops."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.only_motion import OnlyMotion, spoil

import kinetree as kt
from kinetree.algorithms.closed.constraints import loop_constraints, loop_errors
from kinetree.codegen.tied import run
from kinetree.contact import Scene
from kinetree.contact.engine.engine import Engine
from kinetree.contact.engine.shift import close_at_end, close_in_middle
from kinetree.joints import Cylindrical, Fixed, Helical, Prismatic, Revolute, Spherical, Translation
from kinetree.model.parts import Loop

TABLED = (
    Revolute("z"), Revolute((1.0, 2.0, -3.0)), Prismatic("-y"), Cylindrical((2.0, -1.0, 2.0)),
    Spherical(), Fixed(), Translation(),
)  # fmt: skip


def looped(rng, *joints):
    """Two trees with loops of the given joints between random bodies, within and across them."""
    kinds = (kt.Free(), Revolute("x"), Spherical(), Prismatic((1.0, 1.0, 0.0)), Revolute("z"))
    builder = kt.ModelBuilder("looped")
    for tree in "ab":
        for k, joint in enumerate(kinds):
            builder.body(
                f"{tree}{k}", on=f"{tree}{max(k // 2 * 2 - 1, 0)}" if k else None, joint=joint,
                at=kt.samples.random_placement(rng), inertia=kt.samples.random_inertia(rng),
            )  # fmt: skip
    loops = []
    for n, joint in enumerate(joints):
        p, s = rng.choice(2 * len(kinds) + 1, 2, replace=False)
        places = kt.samples.random_placement(rng), kt.samples.random_placement(rng)
        loops.append(Loop(f"loop{n}", int(p), int(s), joint, *places, misalignment=0.0))
    return builder.build().replace(loops=loops)


def dense_rows(engine):
    """Rows of loops of an engine as a matrix, (n, nv)."""
    rows, p = engine.rows, engine.problem
    K = np.zeros((rows.loops, p.nv))
    for s in range(rows.loops):
        i = rows.closed.at[s]
        for a in rows.loop_node[rows.loop_first[s] : rows.loop_first[s + 1]]:
            n = p.node_count[a]
            K[s, p.node_first[a] : p.node_first[a] + n] = rows.loop_value[i : i + n]
            i += n
    return K


@pytest.mark.parametrize(
    "traced", [(), (Helical("x", pitch=0.1),)], ids=["tables", "with traced ones"]
)
def test_rows_and_errors_are_those_of_the_constraints(traced):
    rng = np.random.default_rng(3)
    model = looped(rng, *TABLED[:4], *traced, *TABLED[4:])
    engine = Engine(model, Scene(model))
    assert engine.rows.closed.count == len(TABLED)
    assert engine.rows.closed.traced == 5 * len(traced)
    m, p, rows, k = engine.mechanism, engine.problem, engine.rows, engine.parts.kernels
    for close, at in ((close_in_middle, engine.s.q_m), (close_at_end, engine.s.q_e)):
        at[:] = q = model.random_configuration(rng)
        run(k.terms)
        close(m, p, rows, k)
        wanted = loop_constraints(model, q, model.zero_velocity)
        assert_close(dense_rows(engine), wanted.K)
        assert_close(rows.loop_error, wanted.error)


def net(n, m, pitch=0.1, radius=0.01):
    """MJCF of a net of n by m knots above a post: bars on ball joints, (n - 1) (m - 1) loops."""
    bar = '<geom type="capsule" size="{0}" fromto="0 0 0 {1} {2} 0" mass="0.01"/>'
    knot = '<geom type="sphere" size="{0}" pos="{1} {2} 0" mass="0.02"/>'
    ball = '<joint type="ball" damping="1e-4" armature="1e-5"/>'

    def link(name, at, x, y, inside, shapes=(bar, knot)):
        drawn = "".join(s.format(radius / (1 + (s is bar)), x, y) for s in shapes)
        place = f"{at[0]} {at[1]} 0"
        return f'<body name="{name}" pos="{place}">{ball}{drawn}{inside}</body>'

    def across(i, j):  # a bar to the knot of the next row, where a loop closes
        at = (0, pitch)
        return link(f"r{i + 1}_{j}", at, pitch, 0, "", (bar,)) if i + 1 < n else ""

    def tooth(i, j, at):
        if j == m:
            return ""
        inside = tooth(i, j + 1, (0, pitch)) + across(i, j)
        return link(f"b{i}_{j}", at, 0, pitch, inside)

    def spine(i, at):
        if i == n:
            return ""
        return link(f"a{i}", at, pitch, 0, tooth(i, 1, (pitch, 0)) + spine(i + 1, (pitch, 0)))

    root = f'<freejoint/><geom type="sphere" size="{radius}" mass="0.02"/>'
    closes = "".join(
        f'<connect body1="r{i}_{j}" body2="b{i}_{j}" anchor="{pitch} 0 0"/>'
        for i in range(1, n) for j in range(1, m)
    )  # fmt: skip
    x, y = (n - 1) * pitch / 2 + 0.013, (m - 1) * pitch / 2 + 0.021
    return f"""<mujoco><option timestep="0.002"/>
        <default><geom contype="1" conaffinity="0"/></default><worldbody>
        <geom type="cylinder" size="0.04 0.2" pos="{x} {y} 0.2" contype="0" conaffinity="1"/>
        <body name="root" pos="0 0 0.42">{root}{tooth(0, 1, (0, 0))}{spine(1, (0, 0))}</body>
        </worldbody><equality>{closes}</equality></mujoco>"""


def net_world(n, m, tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "net.xml"
    path.write_text(net(n, m))
    return kt.World.from_file(path)


def test_condensed_steps_are_those_of_the_whole_matrix(tmp_path):
    world = net_world(4, 4, tmp_path)
    model = world.model
    engines = [Engine(model, world.scene, tolerance=1e-10) for _ in range(2)]
    engines[1].problem.condenses = 0
    motions = [OnlyMotion(engine) for engine in engines]
    q, qd = np.array(world.q), np.array(world.qd)
    condensed, kept = 0, {}
    for _ in range(120):
        found = [motion.step(q, qd, 2e-3, memory=kept) for motion in motions]
        kept = motions[0].memory_of(0)
        condensed += engines[0].rows.contacts > 0 and engines[0].work.condensed > 0
        # Bars turn about their own axes with hardly any inertia: energy is what is solved for.
        error, H = found[0].qd - found[1].qd, kt.mass_matrix(model.spanning_tree, q)
        assert error @ H @ error < 1e-13 * max(found[0].qd @ H @ found[0].qd, 0.1)
        q, qd = found[0].q, found[0].qd
    assert condensed > 30


def test_the_matrix_that_is_kept_is_written_before_it_is_read(tmp_path):
    world = net_world(4, 4, tmp_path)
    first = kt.simulate(world, duration=0.15)  # onto the post
    assert first.acted.engine.work.condensed > 0
    spoil(first.acted.engine)
    assert np.array_equal(kt.simulate(world, duration=0.15).q, first.q)


def test_a_net_on_a_post_stays_closed(tmp_path):
    world = net_world(3, 4, tmp_path)
    touched = 0
    for _ in range(10):
        world.step(30)
        touched += len(world.contacts()) > 0
        assert np.max(np.abs(loop_errors(world.model, world.q))) < 1e-9
        assert world.report().can_be_trusted
    assert touched > 5
