"""``<include>``: models from other files on disk."""

import os

from kinetree.errors import LoadError
from kinetree.loaders.content import content
from kinetree.loaders.paths import Folders
from kinetree.loaders.report import Report
from kinetree.loaders.xml import LIMIT_BYTES, Node, parse

__all__ = ["Includes"]

_DEEPEST = 32
_MOST = 1000


class Includes:
    """Opens the files that a file includes, and those that they include, within limits."""

    def __init__(self, report: Report, extra=()):
        self.report, self.extra = report, list(extra)
        self.reports: list[tuple[Report, Node]] = []
        self.opened: list[str] = []  # those that are being read, the innermost last
        self.count = self.size = self.bodies = 0

    def open(self, node: Node, folders: Folders) -> tuple[Node, Folders, str]:
        """The root element of the file behind an ``<include>``, its folders and its path."""
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
        report = Report(path)
        root = Node(parse(source, path), report)
        if root.tag != "sdf":
            raise root.error("the root element of an SDF file is <sdf>")
        self.bodies += sum(1 for _ in root.element.iter("{*}link"))
        self.report.check_bodies(self.bodies)
        self.reports.append((report, root))
        return root, Folders(path, [*folders.extra, *self.extra]), path

    def _bytes(self, path, uri):
        try:
            size = os.path.getsize(path)
            self.size += size
            if self.size > LIMIT_BYTES:
                raise uri.error(f"the included files have more than {LIMIT_BYTES} bytes in all")
            return content(path)
        except OSError as error:
            raise uri.error(f"the file cannot be read: {error}") from None

    def finish(self):
        """Put what was not used of the included files into the report of the first one."""
        for report, root in self.reports:
            report.unused(root.element)
            self.report.notices.extend(report.notices)


def _model_file(path, uri):
    """The file itself, or the one that the ``model.config`` of a folder names."""
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
    parts = (text or "0").split(".")
    return tuple(int(p) if p.isdigit() and len(p) < 6 else 0 for p in parts)


def _inside(path, folder, uri):
    real, folder = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([real, folder]) != folder:
        raise uri.error(f"{path!r} lies outside the folder of the model")
    return real
