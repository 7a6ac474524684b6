"""Everything that reads a file, with sound files to break, and files that were made to harm.

``READERS`` has one entry for each. ``broken`` makes a file of one of its seeds wrong in bytes, in
numbers or in structure; ``poisons`` are whole files that are traps; ``traps`` are things in a
folder that are not files at all.
"""

import copy
import json
import os
import random
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hostile.broken_files import archive, array_file, hurt_archive, hurt_json, members
from loaders.fuzzing import SEEDS, URDF, hurt
from lxml import etree

import kinetree as kt
from kinetree.loaders import read
from kinetree.textbook.record import Recording

SRDF = b"""<robot name="double_pendulum_continuous"><virtual_joint name="v" type="floating"
parent_frame="odom" child_link="base_link"/><group name="g"><joint name="joint1"/>
<chain base_link="base_link" tip_link="link2"/><group name="h"/></group><group name="h">
<link name="link1"/></group><group_state name="home" group="g"><joint name="joint1" value="0.5"/>
</group_state><end_effector name="e" parent_link="link2" group="h"/>
<disable_collisions link1="link1" link2="link2" reason="Adjacent"/><passive_joint name="joint2"/>
</robot>"""


@dataclass(frozen=True)
class Reader:
    """What reads a kind of file, and returns something whose numbers ``finite`` looks at."""

    suffix: str
    seeds: list[bytes]
    read: Callable
    kind: str = "bytes"
    """Of structure: ``"xml"``, ``"json"``, ``"toml"``, ``"npz"`` or ``"bytes"``."""


def _world():
    world = kt.World("stack", friction=0.5)
    world.add_ground()
    world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, at=[(0, 0, 0.05), (0, 0, 0.15)])
    world.add("double_pendulum", name="arm", at=(1, 0, 3))
    world.step(20)
    return world


def _written(write, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"seed{suffix}"
        write(path)
        return path.read_bytes()


def _motion():
    t = np.linspace(0, 1, 6)
    q, zero = np.sin(t)[:, None], np.zeros(6)
    return kt.Trajectory(kt.samples.pendulum(), t, q, q, 0 * q, zero, zero, zero)


def _recording():
    recording = Recording()
    x = recording.array("x", (2,))
    return lambda path: recording.write(path, [x[0] * x[1] + 2.0, x[0] - x[1]])


def _with_model(path):
    return kt.Trajectory.load(path, model=kt.samples.pendulum())


def _with_semantics(path):
    return kt.load(path.parent / "double.urdf", srdf=path)


def _checked(path):
    kt.check(path)


def _sweep(folder):
    """A sweep in a folder; the path of its manifest."""
    run = lambda model, k: {"square": k * k}  # noqa: E731
    kt.sweep(kt.samples.pendulum(), run, {"k": np.arange(4.0)}, folder=folder, threads=1)
    return next(Path(folder).glob("*.json"))


def _with_manifest(path):
    """The sweep whose manifest is the file."""
    folder = path.parent / "sweep"
    if not folder.exists():
        _sweep(folder)
    manifest = next(folder.glob("*.json"))
    manifest.unlink()
    manifest.symlink_to(path)
    return kt.Sweep.load(folder)


def _manifest():
    with tempfile.TemporaryDirectory() as folder:
        return _sweep(folder).read_bytes()


def readers() -> dict[str, Reader]:
    """All of them, by name."""
    xml = {"urdf": ".urdf", "sdf": ".sdf", "mjcf": ".xml"}
    found = {name: Reader(end, SEEDS[name], read, "xml") for name, end in xml.items()}
    found["toml"] = Reader(".toml", SEEDS["toml"], read, "toml")
    found["dh"] = Reader(".csv", SEEDS["dh"], read)
    found["json"] = Reader(".json", SEEDS["json"], read, "json")
    found["srdf"] = Reader(".srdf", [SRDF], _with_semantics, "xml")
    found["doctor"] = Reader(".urdf", SEEDS["urdf"], _checked, "xml")
    found["scene, sdf"] = Reader(".sdf", SEEDS["sdf"], kt.World.from_file, "xml")
    found["scene, mjcf"] = Reader(".xml", SEEDS["mjcf"], kt.World.from_file, "xml")
    found["world"] = Reader(".npz", [_written(_world().save, ".npz")], kt.World.load, "npz")
    for suffix in (".npz", ".parquet", ".nc"):
        kind = "npz" if suffix == ".npz" else "bytes"
        seed = _written(_motion().save, suffix)
        found[f"motion, {suffix}"] = Reader(suffix, [seed], kt.Trajectory.load, kind)
    found["motion, .csv"] = Reader(".csv", [_written(_motion().save, ".csv")], _with_model)
    found["sweep"] = Reader(".json", [_manifest()], _with_manifest, "json")
    found["recording"] = Reader(".txt", [_written(_recording(), ".txt")], Recording.read)
    return found


def folder_for(name, folder: Path):
    """What else a reader needs in the folder."""
    if name == "srdf":
        (folder / "double.urdf").write_bytes(URDF[0])


# --- broken files --------------------------------------------------------------------------------


def broken(reader: Reader, rng: random.Random) -> bytes:
    """A file that is wrong in bytes, in numbers, or in its structure."""
    seed = rng.choice(reader.seeds)
    if reader.kind == "npz":
        return _hurt_npz(seed, rng)
    if reader.kind == "bytes" or rng.random() < 0.4:
        return hurt(seed, rng)
    if reader.kind == "xml":
        return hurt_elements(seed, rng)
    if reader.kind == "json":
        return hurt_json(seed.decode(), rng).encode("utf-8", "surrogatepass")
    return _hurt_toml(seed, rng)


def _hurt_npz(seed, rng):
    if rng.random() < 0.5:
        return hurt_archive(seed, rng)
    parts = members(seed)
    if rng.random() < 0.5:
        about = hurt_json(str(np.lib.format.read_array(_file(parts["about.npy"]))), rng)
        return archive(parts | {"about.npy": array_file(about)})
    name = rng.choice([n for n in parts if n != "about.npy"])
    values = np.lib.format.read_array(_file(parts[name])).copy()
    if values.size and values.dtype.kind == "f":
        values.flat[rng.randrange(values.size)] = rng.choice((np.nan, np.inf, 1e300, -1e18))
    return archive(parts | {name: array_file(values)})


def _file(data):
    import io

    return io.BytesIO(data)


def hurt_elements(source: bytes, rng: random.Random) -> bytes:
    """XML that is well-formed, with elements and attributes that are gone, twice, or elsewhere."""
    root = etree.fromstring(source, etree.XMLParser(recover=True))
    for _ in range(rng.randint(1, 5)):
        every = [e for e in root.iter() if isinstance(e.tag, str)]
        one, other = rng.choice(every), rng.choice(every)
        way = rng.randrange(7)
        if way == 0 and one is not root:
            one.getparent().remove(one)
        elif way == 1:
            other.append(copy.deepcopy(one))
        elif way == 2:
            one.tag = other.tag
        elif way == 3 and one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        elif way == 4 and one.attrib:
            one.set(rng.choice(list(one.attrib)), _text(rng))
        elif way == 5 and other.attrib:
            name = rng.choice(list(other.attrib))
            one.set(name, other.get(name))
        elif way == 6:
            one.text = _text(rng)
    return etree.tostring(root)


def _text(rng):
    return rng.choice((
        "nan", "inf", "-1", "0", "1e300", "x", "", "0 0 0", "nan nan nan", "1e30 1 1", "a", "base",
        "1 2 3 4 5 6", "é", "10" * 200, "-inf",
    ))  # fmt: skip


def _hurt_toml(seed, rng):
    """TOML with one value replaced; written by hand, as there is no writer of TOML in Python."""
    lines = seed.decode().split("\n")
    places = [k for k, line in enumerate(lines) if "=" in line]
    for k in rng.sample(places, min(len(places), rng.randint(1, 3))):
        name = lines[k].partition("=")[0]
        lines[k] = f"{name}= " + rng.choice((
            "nan", "inf", "-1", "[]", "{}", '""', "[[]]", "true", "1e300", '"x" * 3', "1979-05-27",
            '["1/0"]', '"1/0"', '"9**9**9"', '"((((1))))"', "[nan, nan, nan]", "{ mass = nan }",
        ))  # fmt: skip
    return "\n".join(lines).encode()


# --- traps ---------------------------------------------------------------------------------------

LAUGHS = (
    b'<!DOCTYPE robot [<!ENTITY a "' + b"ha" * 50 + b'">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + k, b"&%c;" % (97 + k) * 50) for k in range(8))
    + b']><robot name="r"><link name="&i;"/></robot>'
)  # fmt: skip


def poisons(reader: Reader) -> dict[str, bytes]:
    """Files that are traps, by name."""
    tag = etree.fromstring(reader.seeds[0], etree.XMLParser(recover=True)).tag if (
        reader.kind == "xml") else "robot"  # fmt: skip
    deep = 20_000
    seed = reader.seeds[0]
    found = {
        "empty": b"", "nul": b"\0" * 100, "bom": b"\xef\xbb\xbf" + seed, "laughs": LAUGHS,
        "external": b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>',
        "deep elements": f"<{tag}>".encode() + b"<link>" * deep + b"</link>" * deep
        + f"</{tag}>".encode(),
        "deep lists": b"[" * deep + b"]" * deep,
        "deep tables": b'{"a":' * deep + b"1" + b"}" * deep,
        "deep TOML": b"a = " + b"[" * deep + b"]" * deep,
        "deep sums": b'kinetree = 1\n[parameters]\nx = "' + b"(" * deep + b"1" + b")" * deep + b'"',
        "long number": seed.replace(b"1", b"1" * 10_000, 3), "utf-16": _recoded(seed, "utf-16"),
        "utf-32": _recoded(seed, "utf-32"), "half": seed[: len(seed) // 2],
        "twice": seed + seed, "long line": b"a" * 5_000_000, "latin": seed + "é".encode("latin-1"),
        "zip": archive({}), "many": b"<" + tag.encode() + b">" + b"<link/>" * 300_000,
    }  # fmt: skip
    return found


def _recoded(seed, encoding):
    return seed.decode("utf-8", "replace").encode(encoding, "replace")


def traps(folder: Path, suffix: str) -> dict[str, Path]:
    """Things that are not files, by name; whoever opens a pipe waits for ever."""
    paths = {name: folder / f"{name}{suffix}" for name in ("pipe", "folder", "circle", "socket")}
    os.mkfifo(paths["pipe"])
    paths["folder"].mkdir()
    paths["circle"].symlink_to(paths["circle"])
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(paths["socket"]))
    zero = folder / f"zero{suffix}"
    zero.symlink_to("/dev/zero")
    return {**paths, "endless": zero, "none": folder / f"none{suffix}"}


# --- numbers -------------------------------------------------------------------------------------


def unsound(found) -> str | None:
    """What is NaN in something that was read without an error."""
    if isinstance(found, kt.World):
        values = {"time": found.time, "q": found.state.q, "qd": found.state.qd}
        bad = [name for name, x in values.items() if not np.all(np.isfinite(x))]
        return f"{bad} of a world" if bad else unsound(found.model)
    if isinstance(found, kt.Trajectory):
        return "times of a motion" if not np.all(np.isfinite(found.t)) else unsound(found.model)
    model = getattr(found, "model", found)
    if isinstance(model, kt.Model):
        try:
            json.dumps(_without_limits(model.to_dict()), allow_nan=False)
        except ValueError as error:
            return f"model: {error}"
    return None


_MAY_BE_INFINITE = {"limits", "lower", "upper", "effort", "velocity", "control", "range"}


def _without_limits(x):
    if isinstance(x, dict):
        return {k: _without_limits(v) for k, v in x.items()
                if k not in _MAY_BE_INFINITE or "nan" in repr(v)}  # fmt: skip
    return [_without_limits(v) for v in x] if isinstance(x, (list, tuple)) else x
