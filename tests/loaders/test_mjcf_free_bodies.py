"""Free bodies that MuJoCo compiles without their joints: the same models as with them."""

import json
import random

import pytest
from support.effort import assert_linear

import kinetree as kt
from kinetree.loaders.load import read
from kinetree.loaders.mjcf import free_bodies

pytestmark = pytest.mark.filterwarnings("ignore::kinetree.ModelWarning")


def both_ways(text, folder, monkeypatch, **options):
    """What a file gives with all free joints compiled by MuJoCo, and as few as can be."""
    file = folder / "scene.xml"
    file.write_text(text)
    results = []
    for fewest in (10**9, 1):
        monkeypatch.setattr(free_bodies, "FEWEST", fewest)
        try:
            loaded = read(file, **options)
        except kt.LoadError as error:
            results.append((str(error), None))
        else:
            results.append((json.dumps(loaded.model.to_dict()), loaded.notices))
    return results


def hidden(text, folder, monkeypatch):
    """How many free joints MuJoCo does not see."""
    seen = []
    find = free_bodies.free_joints
    monkeypatch.setattr(free_bodies, "FEWEST", 1)
    monkeypatch.setattr(
        "kinetree.loaders.mjcf.reader.free_joints", lambda s: seen.append(find(s)) or seen[-1]
    )
    checked = free_bodies.as_if_free
    monkeypatch.setattr(
        "kinetree.loaders.mjcf.reader.as_if_free",
        lambda *given: checked(*given) or seen.append({}),
    )
    file = folder / "hidden.xml"
    file.write_text(text)
    read(file)
    return len(seen[-1])


BOX = '<geom type="box" size="0.1 0.2 0.3"/>'
TWO = f'<body name="a" pos="1 2 3" euler="10 20 30"><freejoint name="fa"/>{BOX}</body>'
TWO += f'<body pos="0 0 1"><freejoint/>{BOX}<site name="tip" pos="0 0 0.3"/></body>'


def scene(bodies=TWO, extra="", head=""):
    return f"<mujoco>{head}<worldbody>{bodies}</worldbody>{extra}</mujoco>"


def test_a_scene_of_free_bodies_has_no_joint_for_mujoco(tmp_path, monkeypatch):
    assert hidden(scene(), tmp_path, monkeypatch) == 2
    with_joints, without = both_ways(scene(), tmp_path, monkeypatch)
    assert with_joints == without
    model = json.loads(without[0])
    assert [b["joint_name"] for b in model["bodies"]] == ["fa", "body_2_joint"]


DEPENDS = {
    "keyframe": ("", '<keyframe><key qpos="{qpos}"/></keyframe>', 0),
    "actuator": ("", '<actuator><motor joint="fa" gear="1 0 0 0 0 0"/></actuator>', 1),
    "actuator on a site": ("", '<actuator><general site="tip"/></actuator>', 1),
    "sensor": ("", '<sensor><framepos objtype="body" objname="a"/></sensor>', 1),
    "weld": ("", '<equality><weld body1="a"/></equality>', 1),
    "tendon": ("<site name='o'/>", '<tendon><spatial><site site="o"/><site site="tip"/></spatial>'
               "</tendon>", 1),
    "exclude": (f"<body name='c'>{BOX}</body>", '<contact><exclude body1="a" body2="c"/></contact>',
                2),
    "hinge below": (f'<body name="d"><freejoint/>{BOX}<body><joint name="h"/>{BOX}</body></body>',
                    '<actuator><motor joint="h"/></actuator>', 2),
    "replicate": (f'<replicate count="2" offset="1 0 0"><body name="r"><freejoint/>{BOX}</body>'
                  "</replicate>", "", 0),
    "frame": (f'<frame pos="1 0 0" euler="0 0 90"><body><freejoint name="q"/>{BOX}</body></frame>',
              "", 3),
    "align": ('<body><freejoint align="true"/><geom type="box" size="1 2 3" pos="1 0 0"/></body>',
              "", 2),
    "joint": (f'<body><joint type="free" name="j"/>{BOX}</body>', "", 3),
    "damped joint": (f'<body><joint type="free" damping="2"/>{BOX}</body>', "", 2),
    "mocap": (f'<body mocap="true">{BOX}</body>', "", 2),
    "a part": (f'<body name="e"><freejoint/><body name="p" pos="0 0 1" euler="30 0 0">{BOX}</body>'
               f"{BOX}</body>", "", 3),
    "all mass in a part": (f'<body name="e"><freejoint/><body name="p">{BOX}</body></body>', "", 0),
    "name of another joint": (f'<body name="fb"><joint name="fa_"/>{BOX}</body>', "", 2),
    "name made up": (f'<body name="body_2_joint"><joint name="body_2_joint"/>{BOX}</body>', "", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", DEPENDS)
def test_what_depends_on_a_free_joint_keeps_it(name, tmp_path, monkeypatch):
    bodies, extra, count = DEPENDS[name]
    qpos = " ".join(["1 2 3 0 1 0 0"] * 2)
    text = scene(TWO + bodies, extra.replace("{qpos}", qpos))
    with_joints, without = both_ways(text, tmp_path, monkeypatch)
    assert with_joints[1] is not None, with_joints[0]
    assert with_joints == without
    assert hidden(text, tmp_path, monkeypatch) == count


@pytest.mark.parametrize(
    "head",
    [
        '<compiler fusestatic="true"/>',
        '<compiler alignfree="true"/>',
        '<compiler settotalmass="3"/>',
        '<compiler inertiafromgeom="true" boundmass="10" boundinertia="3"/>',
        '<default><joint damping="1"/><geom density="10"/></default>',
        '<default><default class="x"><geom mass="2"/></default></default>',
        '<option gravity="0 0 -1"><flag filterparent="disable"/></option>',
    ],
)
def test_settings_of_a_file(head, tmp_path, monkeypatch):
    more = f'<body><joint type="free"/>{BOX}</body><body>{BOX}</body>'
    with_joints, without = both_ways(scene(TWO + more, head=head), tmp_path, monkeypatch)
    assert with_joints[1] is not None, with_joints[0]
    assert with_joints == without


@pytest.mark.parametrize(
    "bodies",
    [
        '<body name="empty"><freejoint/></body>',
        '<body><freejoint/><geom type="plane" size="1 1 1"/></body>',
        f'<body name="a"><freejoint/>{BOX}</body>',
        f'<body><freejoint name="fa"/>{BOX}</body>',
        f'<body><freejoint/><freejoint/>{BOX}</body>',
        f'<body><freejoint/><joint/>{BOX}</body>',
        f'<body><freejoint colour="red"/>{BOX}</body>',
        f'<body mocap="true"><freejoint/>{BOX}</body>',
        f"<body><body><freejoint/>{BOX}</body></body>",
        '<body><freejoint/><geom type="box" size="-1 1 1"/></body>',
    ],
)  # fmt: skip
def test_files_that_mujoco_rejects_get_the_same_message(bodies, tmp_path, monkeypatch):
    with_joints, without = both_ways(scene(TWO + bodies), tmp_path, monkeypatch)
    assert with_joints[1] is None
    assert "MuJoCo" in with_joints[0]
    assert with_joints == without


@pytest.mark.parametrize("options", [{"floating_base": True}, {"lump": False}])
def test_options_of_reading(options, tmp_path, monkeypatch):
    more = f'<body name="b">{BOX}</body><body name="c"><joint/>{BOX}<body>{BOX}</body></body>'
    with_joints, without = both_ways(scene(TWO + more), tmp_path, monkeypatch, **options)
    assert with_joints == without


def random_scene(rng):
    """A file with free bodies, and things that may refer to them."""

    def maybe(text, chance=0.5):
        return text if rng.random() < chance else ""

    def numbers(n, low=-1.0, high=1.0):
        return " ".join(f"{rng.uniform(low, high):.9g}" for _ in range(n))

    def shape(name):
        kind = rng.choice(["box", "sphere", "capsule", "cylinder", "ellipsoid"])
        surface = maybe('friction="0.3 0.1 0.1"') + maybe(' condim="4"', 0.2)
        where = maybe(f'pos="{numbers(3)}"') + maybe(f' euler="{numbers(3, -180, 180)}"')
        words = (maybe(f'name="{name}_g"'), where, surface, maybe('class="x"', 0.2))
        return f'<geom type="{kind}" size="{numbers(3, 0.1, 1)}" {" ".join(words)}/>'

    names, joints, bodies = [], [], []
    for k in range(rng.randint(1, 6)):
        name, joint = f"b{k}", f"j{k}"
        pose = f'pos="{numbers(3)}" ' + rng.choice(
            [
                "",
                f'quat="{numbers(4)}"',
                f'euler="{numbers(3, -90, 90)}"',
                f'axisangle="{numbers(4)}"',
            ]
        )
        given = maybe(f'name="{name}"', 0.7)
        label = maybe(f' name="{joint}"')
        kind = rng.choice(
            [f"<freejoint{label}/>", f'<joint type="free"{label}/>', "<freejoint/>", "",
             f'<joint{label} axis="0 1 0"/>', f'<joint{label} type="ball"/>']
        )  # fmt: skip
        inside = "".join(shape(f"{name}{i}") for i in range(rng.randint(1, 3)))
        inside += maybe(f'<site name="s{k}" pos="{numbers(3)}"/>')
        inside += maybe('<inertial pos="0.1 0 0" mass="2" diaginertia="1 1 1.5"/>', 0.3)
        hinge = maybe("<joint/>", 0.3)
        inside += maybe(f'<body pos="{numbers(3)}">{hinge}{shape(name + "p")}</body>', 0.3)
        style = maybe('childclass="x"', 0.3)
        text = f"<body {given} {pose} {style}>{kind}{inside}</body>"
        bodies.append(f"<frame pos='{numbers(3)}'>{text}</frame>" if rng.random() < 0.2 else text)
        names += [name] if given else []
        joints += [joint] if label and "free" in kind else []
    extra = ""
    if names:
        one, other = rng.choice(names), rng.choice(names)
        extra += maybe(
            f'<contact><exclude body1="{one}" body2="{other}"/></contact>', 0.4 * (one != other)
        )
        extra += maybe(f'<equality><connect body1="{one}" anchor="0 0 1"/></equality>', 0.2)
        extra += maybe(f'<sensor><framelinvel objtype="body" objname="{one}"/></sensor>', 0.3)
        extra += maybe(f'<sensor><subtreecom body="{one}"/></sensor>', 0.2)
    if joints:
        extra += maybe(f'<actuator><motor joint="{rng.choice(joints)}"/></actuator>', 0.2)
    defaults = (
        '<default><geom density="700"/><default class="x"><geom density="300" rgba="1 0 0 1"/>'
    )
    defaults += maybe('<joint damping="0.1"/>') + "</default></default>"
    head = defaults + maybe('<compiler angle="radian"/>') + maybe('<compiler autolimits="false"/>')
    return scene("".join(bodies), extra, head)


def test_random_scenes(tmp_path, monkeypatch):
    rng, refused, least = random.Random(5), 0, 0
    for _ in range(60):
        text = random_scene(rng)
        with_joints, without = both_ways(text, tmp_path, monkeypatch)
        assert with_joints == without, text
        refused += with_joints[1] is None
        least += "free" in text
    assert refused < 20
    assert least > 30


def test_loading_is_linear_in_the_number_of_free_bodies():
    def text(n):
        return scene("".join(f'<body pos="{k} 0 0"><freejoint/>{BOX}</body>' for k in range(n)))

    texts = {n: text(n) for n in (200, 1600)}
    assert_linear(lambda n: kt.loads(texts[n], "mjcf"), tuple(texts))


def test_a_world_from_a_file_has_the_model_of_the_file(tmp_path):
    file = tmp_path / "scene.xml"
    file.write_text(scene())
    world, model = kt.World.from_file(file), kt.load(file)
    assert world.model.to_dict() == model.to_dict()
    world.add(kt.geometry.Sphere(0.1), mass=1.0, at=(3.0, 0.0, 0.0), name="ball")
    assert world.model.body_names == (*model.body_names, "ball")
    posture = world.model.posture("qpos0")
    assert posture.q.tolist()[:14] == model.posture("qpos0").q.tolist()
