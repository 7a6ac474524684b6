"""Options of a command in records: those that belong together, one parameter for each record.

    @dataclass(frozen=True)
    class Start:
        q: Position = None
        qd: Velocity = None

    @with_records
    def simulate(robot: RobotArgument, *, start: Start): ...     # --q, --qd

Typer reads options from the parameters of a function. ``with_records`` shows it the fields of the
records instead, in their order, and puts the values together again for the call.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from kinetree.cli.options import Floating, FolderOption, RobotOption, SrdfOption, open_robot


@dataclass(frozen=True)
class Reading:
    """How the file of a robot is read."""

    floating: Floating = False
    srdf: SrdfOption = None
    folder: FolderOption = None

    def robot(self, name: str, *, keep_fixed: bool = False) -> RobotOption:
        """Robot model of a file or sample; exits with a list of choices if there is none."""
        options = {"floating": self.floating, "srdf": self.srdf, "folders": self.folders}
        return open_robot(name, **options, keep_fixed=keep_fixed)

    @property
    def folders(self) -> list[Path]:
        """Additional folders for meshes."""
        return self.folder or []


def with_records(command: Callable) -> Callable:
    """Command whose dataclass parameters become options, field by field."""
    hints = get_type_hints(command, include_extras=True)
    records: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for p in inspect.signature(command).parameters.values():
        if p.name in records:
            parameters += _parameters_of(records[p.name])
        else:
            parameters.append(p.replace(annotation=hints[p.name]))

    def run(**values: Any):
        for name, kind in records.items():
            values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
        return command(**values)

    run.__name__, run.__doc__, run.__module__ = (
        command.__name__,
        command.__doc__,
        command.__module__,
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    return run


def _parameters_of(record) -> list[inspect.Parameter]:
    """Command-line parameters for the fields of a dataclass."""
    hints = get_type_hints(record, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(f.name, kind, default=f.default, annotation=hints[f.name])
        for f in fields(record)
    ]
