"""What can touch, and how: scenes of MJCF files against MuJoCo, also after writing and reading."""

import warnings

import numpy as np
import pytest
from support.mujoco_mechanisms import loaded

import kinetree as kt
from kinetree.contact import Scene
from kinetree.model.geometry import Box, HeightField, Sphere, Surface
from kinetree.model.names import ShapeNames
from kinetree.writers.mjcf import to_mjcf

mujoco = pytest.importorskip("mujoco")


def text(world, after="", flag="", default=""):
    return (
        f"<mujoco model='m'><option><flag {flag}/></option><default>{default}</default>"
        f"<worldbody>{world}</worldbody>{after}</mujoco>"
    )


def leg(name, x):
    """A leg on a hip of two hinges, and an ankle of one."""
    return (
        f"<body name='{name}_hip' pos='{x} 0 0'><joint axis='0 0 1'/><joint axis='0 1 0'/>"
        f"<geom name='{name}_thigh' type='capsule' fromto='0 0 0 0 0 -.2' size='.05'/>"
        f"<body name='{name}_shin' pos='0 0 -.2'><joint axis='0 1 0'/>"
        f"<geom type='capsule' fromto='0 0 0 0 0 -.2' size='.04'/>"
        f"<body name='{name}_toe' pos='0 0 -.2'><geom size='.05' friction='1.5'/></body>"
        f"</body></body>"
    )


ANT = text(
    "<geom name='floor' type='plane' size='9 9 1' conaffinity='1' contype='2'/>"
    "<body name='torso' pos='0 0 1'><freejoint/><geom size='.25'/>"
    + "".join(leg(name, x) for name, x in (("a", 0.3), ("b", -0.3), ("c", 0.1)))
    + "</body>",
    default="<geom contype='0' conaffinity='2'/>",
)
ANT_OF_ONE_MASK = ANT.replace("contype='0' conaffinity='2'", "contype='1' conaffinity='1'")


def finger(name, y):
    """Three phalanges, the first on two hinges, all called like their geoms."""
    return (
        f"<body name='{name}' pos='0 {y} .1'><joint axis='1 0 0'/><joint axis='0 1 0'/>"
        f"<geom name='{name}' type='box' size='.01 .01 .03'/>"
        f"<body name='{name}_2' pos='0 0 .06'><joint axis='1 0 0'/><geom size='.01'/>"
        f"<geom size='.01' pos='0 0 .01'/>"
        f"<body name='{name}_3' pos='0 0 .03'><joint axis='1 0 0'/>"
        f"<geom name='{name}_tip' size='.01'/></body></body></body>"
    )


HAND = text(
    "<body name='forearm'><geom type='cylinder' size='.05 .1'/>"
    "<body name='wrist'><joint axis='1 0 0'/><joint axis='0 1 0'/>"
    "<geom type='box' size='.02 .02 .02'/><body name='palm' pos='0 0 .05'>"
    "<geom name='palm' type='ellipsoid' size='.05 .05 .02'/><geom type='box' size='.04 .04 .01'/>"
    + "".join(finger(name, y) for name, y in (("ff", 0.03), ("mf", 0), ("th", -0.03)))
    + "</body></body></body><body name='ball' pos='0 0 .2'><freejoint/><geom size='.04'/></body>",
    after="<contact><exclude name='e' body1='palm' body2='ff_2'/>"
    "<exclude body1='ff' body2='mf'/><exclude body1='forearm' body2='wrist'/>"
    "<exclude body1='ff_3' body2='th_3'/>"
    "<pair name='pinch' geom1='ff_tip' geom2='th_tip' friction='2 2 .1' condim='4'/></contact>",
)
PAIRS = text(
    "<geom name='floor' type='plane' size='1 1 1'/>"
    "<body name='a' pos='0 0 .1'><freejoint/><geom name='a1' size='.1'/>"
    "<geom name='a2' size='.05'/>"
    "<body name='b'><joint/><geom name='b1' size='.1'/></body></body>"
    "<body name='c'><freejoint/><geom name='c1' size='.1' contype='4' conaffinity='4'/></body>",
    default="<geom contype='0' conaffinity='0'/>",
    after="<contact><pair geom1='floor' geom2='a1' friction='.3 .3'/>"
    "<pair geom1='b1' geom2='a1' condim='1'/><pair geom1='c1' geom2='a2' margin='.02' gap='.01'/>"
    "</contact>",
)
SURFACES = text(
    "<geom name='floor' type='plane' size='1 1 1' friction='.4 .02' margin='.01'/>"
    + "".join(
        f"<body name='b{k}' pos='{k} 0 .1'><freejoint/><geom size='.1' {of_geom}/></body>"
        for k, of_geom in enumerate(
            (
                "friction='.2'", "friction='.9 .1 .2' condim='6'", "condim='1'", "priority='1'",
                "friction='.1' priority='2' condim='1'", "margin='.03' gap='.02'",
            )
        )
    ),
)  # fmt: skip
UNFILTERED = HAND.replace("<flag />", "<flag filterparent='disable'/>")
OFF = PAIRS.replace("<flag />", "<flag contact='disable'/>")
TEXTS = {
    "ant": ANT, "ant of one mask": ANT_OF_ONE_MASK, "hand": HAND, "pairs": PAIRS,
    "surfaces": SURFACES, "no filter of parents": UNFILTERED, "switched off": OFF,
}  # fmt: skip


def compiled(source):
    return mujoco.MjModel.from_xml_string(source)


def by_filter(mj):
    """Pairs of geoms that pass MuJoCo's filters, computed from the fields of its model."""
    excluded = set(mj.exclude_signature.tolist())
    weld, found = mj.body_weldid, set()
    keep_parents = bool(mj.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    if mj.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT:
        return found
    for i in range(mj.ngeom):
        for j in range(i + 1, mj.ngeom):
            p, s = sorted((int(mj.geom_bodyid[i]), int(mj.geom_bodyid[j])))
            wp, ws = weld[p], weld[s]
            above = [weld[mj.body_parentid[w]] for w in (wp, ws)]
            family = wp != 0 and ws != 0 and (above[0] == ws or above[1] == wp)
            fits = mj.geom_contype[i] & mj.geom_conaffinity[j]
            fits |= mj.geom_contype[j] & mj.geom_conaffinity[i]
            if fits and wp != ws and (keep_parents or not family) and (p << 16) + s not in excluded:
                found.add((i, j))
    for i, j in zip(mj.pair_geom1.tolist(), mj.pair_geom2.tolist(), strict=True):
        found.add((min(i, j), max(i, j)))
    return found


def by_collision(source):
    """The contacts that MuJoCo finds where everything counts, however far away."""
    mj = compiled(source)
    mj.geom_gap[:] = mj.pair_gap[:] = 50.0
    mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # boxes of geoms have no gap
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    return {tuple(sorted((int(c.geom1), int(c.geom2)))): c for c in data.contact}


def pairs(model, **options):
    """Pairs of a scene by the numbers of their shapes, which are those of the geoms."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where nothing can touch
        scene = Scene(model, **options)
    number = {id(g): k for k, g in enumerate(model.geometry)}
    keys = [tuple(sorted((number[id(p.first)], number[id(p.second)]))) for p in scene.pairs]
    return dict(zip(keys, range(len(keys)), strict=True)), scene


@pytest.mark.parametrize("name", TEXTS)
def test_scenes_have_the_pairs_of_mujoco(name):
    model, mj = loaded(TEXTS[name]), compiled(TEXTS[name])
    assert len(model.geometry) == mj.ngeom
    assert set(pairs(model)[0]) == by_filter(mj)
    assert set(pairs(model)[0]) == set(by_collision(TEXTS[name]))
    assert set(pairs(loaded(TEXTS[name], lump=False))[0]) == by_filter(mj)


def test_masks_and_filters_leave_out_most_pairs():
    """The numbers by hand: 10 shapes touch the floor alone, or others that are not their kin."""
    assert len(pairs(loaded(ANT))[0]) == 10
    # 11 shapes make 55 pairs; 3 toes with their shins, 3 hips with the torso, 3 shins and 3 toes
    # with their hips.
    assert len(pairs(loaded(ANT_OF_ONE_MASK))[0]) == 55 - 12


@pytest.mark.parametrize("name", ["hand", "pairs", "surfaces"])
def test_coefficients_and_margins_are_those_of_mujoco(name):
    found, scene = pairs(loaded(TEXTS[name]))
    for key, c in by_collision(TEXTS[name]).items():
        k = found[key]
        assert scene.friction[k] == (0 if c.dim == 1 else c.friction[0])
        assert scene.pairs[k].margin == pytest.approx(c.includemargin, abs=1e-15)
        surface = scene.pairs[k].surface
        assert surface.condim == c.dim
        assert (surface.torsion, surface.rolling) == (c.friction[2], c.friction[3])


@pytest.mark.parametrize("name", TEXTS)
def test_written_files_say_the_same(name):
    meant = loaded(TEXTS[name])
    written = to_mjcf(meant)
    again = loaded(written)
    in_mujoco = named(again, by_filter(compiled(written)))
    assert in_mujoco == named(meant, by_filter(compiled(TEXTS[name])))
    assert by_name(again) == by_name(meant)
    for one, other in zip(again.frames, meant.frames, strict=True):
        assert (one.name, one.body) == (other.name, other.body)
        np.testing.assert_allclose(one.placement.r, other.placement.r, atol=1e-15)
    assert touching(again) == touching(meant)
    assert loaded(to_mjcf(again)) == again


def named(model, numbers):
    own = ShapeNames(model).own
    return {frozenset((own[i], own[j])) for i, j in numbers}


def by_name(model):
    shapes = zip(ShapeNames(model).own, model.geometry, strict=True)
    return {name: (g.surface, g.link, g.collision) for name, g in shapes}


def touching(model):
    scene = pairs(model)[1]
    names = (frozenset(name.split("/")) for name in scene.pair_names)
    return dict(zip(names, (p.surface for p in scene.pairs), strict=True))


def test_pairs_of_builders_and_height_fields_are_written():
    I = kt.shapes.sphere(0.1, mass=1.0)
    b = kt.ModelBuilder("m")
    b.body("arm", joint=kt.Revolute("z"), inertia=I)
    b.body("hand", on="arm", joint=kt.Revolute("x"), inertia=I, at=(0, 0, 1))
    b.geometry(Sphere(0.1), on="arm").geometry(Box((1, 1, 1)), on="arm", name="box")
    b.geometry(Sphere(0.1), on="hand", surface=Surface(friction=0.5, restitution=0.5))
    b.geometry(HeightField(((0.5, 1.0, 1.5), (2.0, 0.5, 0.75)), (2.0, 3.0)), name="hills")
    b.contact_pair("arm", "hand").exclude("hand", "hills").exclude("box", "hills")
    model = b.build()
    with pytest.warns(kt.ModelWarning, match="restitution of surfaces; that 'box' and 'hills'"):
        written = to_mjcf(model)
    again = loaded(written)
    # the fourth, of the first shape of the arm and the hills, is what MJCF cannot leave out alone
    assert set(touching(again)) - set(touching(model)) == {frozenset(("box", "hills"))}
    hills = next(g for g in again.geometry if g.name == "hills")
    heights = np.array(hills.shape.heights) + hills.placement.r[2]
    np.testing.assert_allclose(heights, model.geometry[-1].shape.heights, rtol=1e-7)
    assert hills.shape.size == (2.0, 3.0)
    mj = compiled(written)
    data, geom = mujoco.MjData(mj), np.zeros(1, dtype=np.int32)
    mujoco.mj_forward(mj, data)
    for x, y, height in ((-0.999, -1.499, 0.5), (-0.999, 1.499, 1.5), (0.999, 1.499, 0.75)):
        down = mujoco.mj_ray(mj, data, [x, y, 9], [0, 0, -1.0], None, 1, mj.nbody - 1, geom)
        assert down == pytest.approx(9 - height, abs=0.01)


def test_shapes_are_held_apart_by_their_margins_in_compiled_code_as_well():
    model = loaded(
        text(
            "<geom name='floor' type='plane' size='1 1 1' margin='.01'/>"
            "<body name='a' pos='0 0 .15'><joint type='slide' axis='0 0 1'/>"
            "<geom size='.1'/></body>"
            "<body name='b' pos='1 0 .15'><joint type='slide' axis='0 0 1'/>"
            "<geom size='.1' margin='.03' gap='.02'/></body>"
        )
    )
    scene, q = Scene(model, "base"), np.zeros(2)
    found = scene.contacts(q, 0.05)
    gap = dict(zip(found.names, found.gap, strict=True))
    assert gap == pytest.approx({"floor/a:0": 0.04, "floor/b:0": 0.01}, abs=1e-15)
    in_kernel = zip(scene.candidates.names, scene.candidate_positions(model, q)[0], strict=True)
    assert dict(in_kernel) == pytest.approx(gap, abs=1e-15)
    rest = kt.simulate(model, q, duration=0.3, contact=kt.contact.TimeStepping(scene))
    assert rest.q[-1] == pytest.approx([-0.04, -0.01], abs=1e-9)


def random_text(rng):
    """Bodies with 0 to 3 joints and 0 to 2 geoms of any masks; any excluded and explicit pairs."""
    bodies, geoms = [], ["floor"]
    masks = ((1, 1), (1, 1), (1, 0), (0, 1), (2, 3), (4, 2), (0, 0))
    surfaces = ("", "condim='1'", "priority='1' friction='.3'", "margin='.01'", "condim='4'")

    def geom():
        name = f"g{len(geoms)}" if rng.random() < 0.6 else ""
        geoms.extend([name] if name else [])
        contype, conaffinity = masks[rng.integers(len(masks))]
        label = f"name='{name}'" if name else ""
        mask = f"contype='{contype}' conaffinity='{conaffinity}'"
        return f"<geom {label} size='.1' {mask} {surfaces[rng.integers(len(surfaces))]}/>"

    def body(depth):
        bodies.append(f"b{len(bodies)}")
        axes = ("1 0 0", "0 1 0", "0 0 1")[: rng.choice([0, 1, 1, 2, 3])]
        return (
            f"<body name='{bodies[-1]}' pos='.1 .2 .3'>"
            "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"
            + "".join(f"<joint axis='{axis}'/>" for axis in axes)
            + "".join(geom() for _ in range(rng.integers(3)))
            + "".join(body(depth + 1) for _ in range(rng.integers(3) if depth < 3 else 0))
            + "</body>"
        )

    world = "<geom name='floor' type='plane' size='1 1 1'/>" + "".join(body(0) for _ in range(3))
    ends = [rng.choice(bodies, 2, replace=False) for _ in range(4)]
    contact = "".join(f"<exclude body1='{a}' body2='{b}'/>" for a, b in ends)
    known = {tuple(sorted(rng.choice(geoms, 2, replace=False))) for _ in range(4)}
    contact += "".join(f"<pair geom1='{a}' geom2='{b}'/>" for a, b in sorted(known))
    return text(world, f"<contact>{contact}</contact>", rng.choice(["", "filterparent='disable'"]))


@pytest.mark.parametrize("seed", range(10))
def test_random_models_have_the_pairs_of_mujoco_before_and_after_writing(seed):
    source = random_text(np.random.default_rng(seed))
    model, mj = loaded(source), compiled(source)
    meant = apart(mj, by_filter(mj))
    assert meant == apart(mj, by_collision(source))
    assert set(pairs(model)[0]) == meant
    written = to_mjcf(model)
    again, mj = loaded(written), compiled(written)
    assert named(again, apart(mj, by_filter(mj))) == named(model, meant)
    assert touching(again) == touching(model)


def apart(mj, found):
    """Pairs of geoms that can move against each other, which explicit pairs need not be."""
    weld = mj.body_weldid[mj.geom_bodyid]
    return {(i, j) for i, j in found if weld[i] != weld[j]}


def test_sensors_and_loops_at_links_are_written():
    """A link is a body of the written file, and its frame no site."""
    source = text(
        "<body name='a'><joint/><geom size='.1'/><body name='foot' pos='0 0 1'>"
        "<geom size='.1' pos='.1 0 0'/></body></body>"
        "<body name='b' pos='0 0 2'><joint/><geom size='.1'/></body>",
        after="<sensor><framepos name='p' objtype='xbody' objname='foot'/></sensor>"
        "<equality><connect body1='foot' body2='b' anchor='0 0 0'/></equality>",
    )
    model = loaded(source)
    again = loaded(to_mjcf(model))
    assert model.frame_names == ("foot",)
    assert "foot" in again.frame_names
    assert "foot_site" not in again.frame_names
    assert [(s.name, s.kind, s.of) for s in again.sensors] == [("p", "framepos", "foot")]
    assert [(c.predecessor, c.successor) for c in again.loops] == [(1, 2)]
    assert touching(again) == touching(model)


def test_surfaces_move_along_as_in_mujoco():
    """A box is carried along by a belt that is turned, here, in MuJoCo, and from a written file."""
    belts = """<mujoco><worldbody>
    <geom name="belt" type="box" size="9 9 .1" pos="0 0 -.1" euler="0 0 90"
    surfacevel="1 0 0 0 0 0"/>
    <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    </worldbody></mujoco>"""
    model = kt.loads(belts)
    (belt,) = (g for g in model.geometry if g.name == "belt")
    assert belt.surface is not None
    assert belt.surface.velocity == (1.0, 0.0, 0.0)
    mj_model = mujoco.MjModel.from_xml_string(to_mjcf(model))
    data = mujoco.MjData(mj_model)
    mujoco.mj_step(mj_model, data, 500)
    world = kt.World(timestep=2e-3)
    world.add(model)
    world.step(500)
    assert world.qd[4] == pytest.approx(1.0, abs=1e-6)
    assert data.qvel[1] == pytest.approx(1.0, abs=1e-2)
