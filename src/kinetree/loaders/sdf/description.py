"""Models of an SDF file and of those it includes, flattened: links, joints, frames by key."""

import os
from dataclasses import dataclass

from kinetree.errors import LoadError
from kinetree.loaders.paths import Folders, content
from kinetree.loaders.report import Report
from kinetree.loaders.sdf.frames import WORLD, FrameEntry, Frames, Pose, Scope, flag_in, pose_in
from kinetree.loaders.sdf.joints import Joint, read_joint
from kinetree.loaders.sdf.links import Link, read_link
from kinetree.loaders.xml import LIMIT_BYTES, Node, parse
from kinetree.spatial import Plucker

_OLDEST, _RENAMED = (1, 5), (1, 7)
_DEEPEST = 32  # models in models, and files that include files
_MOST = 1000  # included files


class Includes:
    """Opens the files that a file includes, and those that they include, within limits."""

    def __init__(self, report: Report, extra=()):
        self.report, self.extra = report, list(extra)
        self.reports: list[tuple[Report, Node]] = []
        self.opened: list[str] = []  # those that are being read, the innermost last
        self.count = self.size = self.bodies = 0

    def open(self, node: Node, folders: Folders) -> tuple[Node, Folders, str]:
        """Root element of an ``<include>``d file, its search folders and path."""
        uri = node.need_one("uri")
        try:
            path = _model_file(folders.locate(uri.text()), uri)
        except LoadError as error:
            message = str(error)
            raise (error if message.startswith(node.report.path) else uri.error(message)) from None
        if path in self.opened or len(self.opened) >= _DEEPEST:
            chain = " -> ".join(os.path.basename(p) for p in [*self.opened[-5:], path])
            raise uri.error(f"files include each other: {chain}")
        self.count += 1
        if self.count > _MOST:
            raise uri.error(f"more than {_MOST} files are included")
        source = self._bytes(path, uri)
        report = Report(path, self.report.effects)
        report.first_counts = self.report.first_counts
        root = Node(parse(source, path), report)
        if root.tag != "sdf":
            raise root.error("the root element of an SDF file is <sdf>")
        self.bodies += sum(1 for _ in root.element.iter("{*}link"))
        self.report.check_bodies(self.bodies)
        self.reports.append((report, root))
        return root, Folders(path, [*folders.extra, *self.extra]), path

    def _bytes(self, path, uri):
        """Content of an included file, within the total size limit."""
        try:
            size = os.path.getsize(path)
            self.size += size
            if self.size > LIMIT_BYTES:
                raise uri.error(f"the included files have more than {LIMIT_BYTES} bytes in all")
            return content(path)
        except OSError as error:
            raise uri.error(f"the file cannot be read: {error}") from None

    def finish(self):
        """Merge notices of included files into the report of the main one."""
        for report, root in self.reports:
            report.note_unused(root.element)
            self.report.notices.extend(report.notices)


def _model_file(path, uri):
    """Path of the model file for a URI: itself, or named by ``model.config``."""
    if not os.path.isdir(path):
        if not os.path.isfile(path):
            raise uri.error(f"there is no file {path!r}")
        return path
    config = os.path.join(path, "model.config")
    if not os.path.isfile(config):
        candidate = os.path.join(path, "model.sdf")
        if os.path.isfile(candidate):
            return _inside(candidate, path, uri)
        raise uri.error(f"the folder {path!r} has no model.config")
    root = parse(content(_inside(config, path, uri)), config)
    files = [(_version(e.get("version")), (e.text or "").strip()) for e in root.findall("sdf")]
    if not files:
        raise uri.error(f"{config!r} names no <sdf> file")
    found = _inside(os.path.join(path, max(files, key=lambda f: f[0])[1]), path, uri)
    if not os.path.isfile(found):
        raise uri.error(f"there is no file {found!r}, which model.config names")
    return found


def _version(text):
    """SDF version as a tuple of integers."""
    parts = (text or "0").split(".")
    return tuple(int(p) if p.isdigit() and len(p) < 6 else 0 for p in parts)


def _inside(path, folder, uri):
    """Real path of a file; LoadError if it lies outside the folder."""
    real, folder = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([real, folder]) != folder:
        raise uri.error(f"{path!r} lies outside the folder of the model")
    return real


@dataclass
class Override:
    """Changes by an ``<include>`` to the model that it includes."""

    node: Node
    name: str | None
    pose: Pose | None
    static: bool | None
    placed_by: str | None
    merge: bool


class Description:
    """Links, joints and frames by key; read first, resolved later."""

    def __init__(self, includes: Includes):
        self.includes = includes
        self.frames = Frames()
        self.links: dict[str, Link] = {}
        self.joints: list[Joint] = []
        self.named: list[str] = []  # keys of <frame>s
        self.canonical: list[str] = []  # keys of models, in order
        self.static: set[str] = set()  # keys of links

    def add_world(self, node: Node, folders: Folders, version):
        """Read a ``<world>``, or a model that is alone in its file."""
        scope = Scope("", WORLD, node)
        self.frames.add(WORLD, FrameEntry("world", scope, node, Plucker.identity(), None))
        if node.tag == "world":
            self._contents(node, scope, folders, version, False, 0)
        return scope

    def add_model(
        self, node, outer, folders, version, *, static=False, depth=0, override=None, alone=False
    ):
        """Read a ``<model>``, which may be nested, included or merged.

        Args:
            node: the element.
            outer: scope that the model is in.
            folders: of its file.
            version: of its file.
            static: whether a model around it is static.
            depth: number of models around it.
            override: what an include says.
            alone: whether names inside of it need no prefix.
        """
        if depth > _DEEPEST:
            raise node.error(f"models are nested more than {_DEEPEST} deep")
        own_name = node.need("name")
        name = (override and override.name) or own_name
        pose = pose_in(node)
        pose = (override and override.pose) or pose
        placed_by = node.get("placement_frame") or None
        placed_by = (override and override.placed_by) or placed_by
        is_static = flag_in(node, "static", False)
        if override and override.static is not None:
            is_static = override.static
        static = static or is_static
        merge = bool(override and override.merge)
        if merge:
            key = outer.prefix + f"_merged__{name}__model__"
            inside = Scope(outer.prefix, key, node)
        elif alone:
            key = "__model__"
            inside = Scope("", key, node)
        else:
            key = outer.prefix + name
            inside = Scope(key + "::", key, node)
        where = override.node if override else node
        self.frames.add(
            key,
            FrameEntry(
                "model",
                outer,
                where,
                pose.placement,
                pose.relative_to or _usual(outer),
                placed_by=placed_by,
                inside=inside,
            ),
        )
        self.canonical.append(key)
        first = self._contents(node, inside, folders, version, static, depth)
        canonical = node.get("canonical_link") or None
        self.frames.entries[key].fixed_to = canonical or first

    def _contents(self, node, scope, folders, version, static, depth):
        """Read links, joints, frames and models inside a model; name of its first link."""
        first_link = first_model = None
        in_world = scope.model == WORLD
        for child in node.all("link", "joint", "frame", "model", "include"):
            if child.tag == "link":
                name = child.need("name")
                self._add_link(child, name, scope, folders, static)
                first_link = first_link or name
            elif child.tag == "joint":
                self._add_joint(child, scope, version)
            elif child.tag == "frame":
                self._add_frame(child, scope)
            else:
                before = len(self.links)
                inner = {"static": static, "depth": depth + (not in_world)}
                if child.tag == "model":
                    name = child.need("name")
                    self.add_model(child, scope, folders, version, **inner)
                else:
                    name = self._include(child, scope, folders, **inner)
                if len(self.links) > before:
                    first_model = first_model or name
        return first_link or first_model

    def _add_link(self, node, name, scope, folders, static):
        """Read an SDF link and its frame."""
        key = scope.prefix + name
        pose = pose_in(node)
        entry = FrameEntry("link", scope, node, pose.placement, pose.relative_to or _usual(scope))
        self.frames.add(key, entry)
        self.links[key] = read_link(node, folders)
        if static:
            self.static.add(key)

    def _add_joint(self, node, scope, version):
        """Read an SDF joint and its frame."""
        name = node.need("name")
        key = frame = scope.prefix + name
        taken = self.frames.entries.get(key)
        if version < _RENAMED and taken is not None and taken.kind == "link":
            frame += " (joint)"  # old files may use a name for a link and for a joint
        joint = read_joint(node, key, frame, scope)
        pose = pose_in(node)
        relative_to = pose.relative_to or joint.child
        entry = FrameEntry("joint", scope, node, pose.placement, relative_to, joint.child)
        self.frames.add(frame, entry)
        self.joints.append(joint)

    def _add_frame(self, node, scope):
        """Read an SDF named frame."""
        key = scope.prefix + node.need("name")
        pose, attached = pose_in(node), node.get("attached_to") or _usual(scope)
        entry = FrameEntry(
            "frame", scope, node, pose.placement, pose.relative_to or attached, attached
        )
        self.frames.add(key, entry)
        self.named.append(key)

    def _include(self, node, scope, folders, *, static, depth):
        """Read an included model under its name."""
        root, inner_folders, path = self.includes.open(node, folders)
        version = version_of(root)
        models = root.all("model")
        if len(models) != 1:
            raise root.error(f"a file that is included must have one <model>, got {len(models)}")
        name = node.one("name")
        placed_by = node.one("placement_frame")
        override = Override(
            node,
            None if name is None else name.text() or None,
            None if node.one("pose") is None else pose_in(node),
            None if node.one("static") is None else flag_in(node, "static"),
            None if placed_by is None else placed_by.text() or None,
            node.get("merge", "false") in ("true", "1"),
        )
        if override.merge and scope.model == WORLD:
            raise node.error("a model cannot be merged into a world, only into a model")
        self.includes.opened.append(path)
        self.add_model(
            models[0], scope, inner_folders, version, static=static, depth=depth, override=override
        )
        self.includes.opened.pop()
        name = override.name or models[0].need("name")
        return f"_merged__{name}__model__" if override.merge else name


def _usual(scope):
    """Name of the frame to which poses refer by default."""
    return WORLD if scope.model == WORLD else "__model__"


def version_of(root: Node) -> tuple[int, int]:
    """Version of an ``<sdf>`` element; an error for versions before 1.5."""
    text = root.need("version")
    try:
        major, minor = (int(part) for part in text.split(".")[:2])
    except ValueError:
        raise root.error(f"version must be such as '1.9', got {text!r}") from None
    if (major, minor) < _OLDEST:
        raise root.error(
            f"SDF {text} gave axes and poses other meanings than SDF 1.5 and later; convert the "
            f"file with 'gz sdf --print'"
        )
    if major > 1:
        root.note("version", f"SDF {text} is newer than 1.12, as which it is read", "setting")
    return major, minor
