"""Findings of the doctor, and the catalogue of their kinds."""

from dataclasses import dataclass

from kinetree.errors import warn
from kinetree.loaders.report import EFFECTS, Effect, short
from kinetree.notebook import block, table

# --- Kinds of findings ---------------------------------------------------------------------------


def _mend(self) -> str:
    """Deprecated name of ``fix``; warns."""
    name = type(self).__name__
    warn(f"{name}.mend is called {name}.fix", DeprecationWarning)
    return self.fix


@dataclass(frozen=True)
class Kind:
    """A kind of finding.

    Attributes:
        severity: ``"error"``: some results are wrong or missing; ``"warning"``: probably
            not intended; ``"note"``: for information.
        why: why it matters.
        fix: how to fix it.
        effect: what it affects: motion, contact, control or pictures.
    """

    severity: str
    why: str
    fix: str
    effect: Effect = "motion"
    mend = property(_mend, doc="Deprecated: ``fix``.")


KINDS = {
    # --- the file ---
    "unreadable": Kind(
        "error", "without a model there is nothing to compute", "correct the file at this place"
    ),
    "number": Kind(
        "error",
        "every parameter of a robot must be a finite number",
        "write finite numbers, separated by spaces",
    ),
    "incomplete": Kind(
        "error",
        "the element is incomplete and cannot be interpreted",
        "add what is missing, or remove the element",
    ),
    "joint-type": Kind(
        "error", "the motion of the joint is undefined", "use one of the joint types of the format"
    ),
    "duplicate-name": Kind(
        "error", "references to this name are ambiguous", "give every part its own name"
    ),
    "unknown-name": Kind(
        "error",
        "what refers to a missing part hangs on nothing, or follows nothing",
        "correct the name, or add the part that it refers to",
    ),
    "two-parents": Kind(
        "error",
        "in a tree every body has one parent; a second joint closes a loop",
        "remove one of the joints, or declare it as the one that closes the loop",
    ),
    "cycle": Kind(
        "error",
        "bodies that are only connected to each other are not connected to the base",
        "reverse one joint, or declare it as the one that closes the loop",
    ),
    "several-roots": Kind(
        "error",
        "bodies that no joint connects to the rest cannot be placed",
        "connect them with a joint, a fixed one for example",
    ),
    "ignored-motion": Kind(
        "warning",
        "the model may move differently from what the file says",
        "write it in a form that the model supports, or allow for the difference",
    ),
    "ignored": Kind(
        "note",
        "the model does not contain what the file says here",
        "nothing to do, unless you rely on it",
    ),
    "too-large": Kind(
        "note", "checks that would take minutes are skipped", "check a part of the mechanism alone"
    ),
    "formulas": Kind(
        "note",
        "sizes, ranks and signs can only be checked for numbers",
        "substitute numbers for the symbols, and check that model",
    ),
    "mesh-missing": Kind(
        "warning",
        "the body cannot be drawn, nor checked for contact; its motion is not affected",
        "correct the path, or name the folder that holds the meshes (option --folder)",
        "picture",
    ),
    "mesh-broken": Kind(
        "warning",
        "the body cannot be drawn, nor checked for contact; its motion is not affected",
        "export the mesh again",
        "picture",
    ),
    "mesh-unseen": Kind(
        "note",
        "meshes that are broken, or in millimetres, go unnoticed",
        'pip install "kinetree[mesh]"',
        "picture",
    ),
    # --- inertia ---
    "inertia-mass": Kind(
        "error",
        "a body with negative mass accelerates against the force that acts on it",
        "give the body a positive mass, or none and no rotational inertia either",
    ),
    "inertia-symmetry": Kind(
        "error",
        "torque and angular momentum of the body contradict each other",
        "write the same number above and below the diagonal",
    ),
    "inertia-positive": Kind(
        "error",
        "the body would gain energy when it is slowed down; simulations diverge",
        "export the inertia again, about the mass centre; look for a wrong sign or column",
    ),
    "inertia-triangle": Kind(
        "error",
        "no distribution of mass has such moments: ixx + iyy >= izz for any axes",
        "export the inertia again, about the mass centre; look for swapped or rounded entries",
    ),
    "inertia-zero": Kind(
        "note",
        "the body is a point mass: rotating it takes no torque",
        "fine if intended; otherwise add its rotational inertia",
    ),
    "massless": Kind(
        "error",
        "forward dynamics divides by an inertia that is zero",
        "give the bodies mass, the joint armature, or make the joint fixed",
    ),
    "joint-without-inertia": Kind(
        "error",
        "forward dynamics divides by an inertia that is zero",
        "give the body a rotational inertia about the axis of the joint, or the joint armature",
    ),
    "dependent-joints": Kind(
        "error",
        "the inertia matrix is singular in every configuration",
        "give the bodies between the joints mass and rotational inertia",
    ),
    "ill-conditioned": Kind(
        "warning",
        "accelerations lose digits, and simulations need tiny steps",
        "look for a light body that carries a heavy one; give its joint armature",
    ),
    # --- units ---
    "unit-length": Kind(
        "warning",
        "lengths are in metres; this looks like millimetres",
        "multiply lengths by 0.001, or set the scale of the export",
    ),
    "unit-mass": Kind(
        "warning",
        "masses are in kilograms; this looks like grams",
        "multiply masses by 0.001, or correct the density in the export",
    ),
    "mass-light": Kind(
        "warning",
        "even small forces cause huge accelerations; masses are in kilograms, lengths in metres",
        "check the units of mass and shapes, or give the body its real mass",
    ),
    "unit-inertia": Kind(
        "warning",
        "inertias are in kg m²; this does not fit the mass and the size of the body",
        "g mm² times 1e-9, or kg mm² times 1e-6, is kg m²; masses are in kilograms",
    ),
    "unit-angle": Kind(
        "warning", "angles are in radians; this looks like degrees", "multiply by pi / 180"
    ),
    "unit-gravity": Kind(
        "warning",
        "gravity is in m/s²; this is not found on any planet",
        "on Earth it is (0, 0, -9.81) with z upwards",
    ),
    "center-outside": Kind(
        "warning",
        "the mass centre of a solid body lies within its hull",
        "the mass centre is given in the frame of the body, in metres",
    ),
    # --- joints ---
    "limit-missing": Kind(
        "warning",
        "planners and random configurations treat the joint as unlimited",
        "add the limits, or make the joint continuous",
    ),
    "limit-order": Kind("error", "no position satisfies both bounds", "swap the bounds"),
    "limit-equal": Kind(
        "warning", "the joint cannot move", "widen the bounds, or make the joint fixed"
    ),
    "limit-effort": Kind(
        "warning",
        "the joint may not exert any force, so no controller can move it",
        "write the largest force [N] or torque [N m] of the drive",
    ),
    "limit-velocity": Kind(
        "warning",
        "the joint may not move at any speed",
        "write the largest speed [m/s or rad/s] of the drive",
    ),
    "limit-negative": Kind(
        "error",
        "limits of effort and velocity are magnitudes, for both directions",
        "drop the sign",
    ),
    "axis": Kind(
        "error",
        "an axis of length zero does not define a motion",
        "write a unit vector such as 0 0 1",
    ),
    "coupling-limits": Kind(
        "warning",
        "a joint is driven to its stop by the joint it follows",
        "widen the limits of the follower, or narrow those of its leader",
    ),
    "overlap": Kind(
        "warning",
        "a simulation with contact starts by pushing the bodies apart",
        "move or shrink the shapes, or exclude the pair from contact: disable_collisions in "
        "SRDF, exclude in MJCF, contact_pairs of the model",
        "contact",
    ),
    "servo-range": Kind(
        "warning",
        "a wrong command drives the joint into its stop, or beyond, with full force",
        "add the range of its commands, as a rule that of the joint, and its largest force",
        "control",
    ),
    "actuator-effort": Kind(
        "note",
        "nothing limits the force that a controller may request",
        "add its largest force, or the effort limit of the joint",
        "control",
    ),
    "actuator-gear": Kind(
        "warning",
        "no command of the actuator reaches the joint",
        "set the gear: joint force for a unit of control",
        "control",
    ),
    "stiff": Kind(
        "note",
        "explicit integrators diverge at the usual step of 1 ms",
        "nothing to do with integrator='auto', which takes 'rosenbrock_w'; otherwise choose that, "
        "take shorter steps, or check the units of the number",
    ),
    # --- loops ---
    "loop-open": Kind(
        "error",
        "the bodies cannot be assembled as the loop joint requires",
        "check the places of the loop joint on both bodies, and the lengths between them",
    ),
    "loop-neutral": Kind(
        "note",
        "positions that close the loop must be found before use",
        "add a posture that closes it, or describe the bodies where they close it",
    ),
    "loop-redundant": Kind(
        "note",
        "motion is unique, but how the bearings share the load is not",
        "fine if intended; a loop joint with more degrees of freedom, such as a ball, is less "
        "redundant",
    ),
    "loop-misaligned": Kind(
        "warning",
        "taken literally, the axes of the loop would lock it: it moves because constraints "
        "that are almost redundant are dropped",
        "write the placements with all digits; or, if the misalignment is real and should be "
        "modelled, kinetree.loops.with_misalignment(model, 0)",
    ),
    "loop-locked": Kind(
        "warning",
        "the loops leave the mechanism no motion at all",
        "give the loop joint the degrees of freedom that the bodies need to move",
    ),
}


SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Place:
    """A file and a line; empty for models that were not read from a file."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


NOWHERE = Place()


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, suspicious or notable about a robot.

    Attributes:
        severity: ``"error"``, ``"warning"`` or ``"note"``.
        code: what kind of finding it is, a key of ``kinetree.doctor.KINDS``.
        part: the body, joint or file that it is about, such as ``"body 'hand'"``.
        message: what is wrong, with numbers.
        place: file and line, where they are known.
    """

    severity: str
    code: str
    part: str
    message: str
    place: Place = NOWHERE

    @property
    def where(self) -> str:
        """Place of the finding: file and line if known, and the part."""
        return ": ".join(filter(None, (str(self.place), self.part)))

    @property
    def why(self) -> str:
        """Reason why the finding matters."""
        return KINDS[self.code].why

    @property
    def fix(self) -> str:
        """Advice how to fix the finding."""
        return KINDS[self.code].fix

    mend = property(_mend, doc="Deprecated: ``fix``.")

    def to_dict(self) -> dict:
        """Finding as plain strings and numbers, ready for JSON."""
        return {
            "severity": self.severity,
            "code": self.code,
            "file": self.place.file or None,
            "line": self.place.line or None,
            "part": self.part,
            "message": self.message,
            "why": self.why,
            "fix": self.fix,
        }

    def __str__(self) -> str:
        return f"{self.severity} [{self.code}] {self.where}: {self.message}"

    def _repr_html_(self) -> str:
        """HTML table of this object for notebooks."""
        return Findings([self])._repr_html_()


class Findings(tuple):
    """Findings, the worst first: a tuple that prints as lines, and as a table in notebooks."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no findings"

    def _repr_html_(self) -> str:
        """HTML table of this object for notebooks."""
        counts = ((sum(f.severity == s for f in self), s) for s in SEVERITIES)
        found = ", ".join(f"{n} {s}{'s' if n > 1 else ''}" for n, s in counts if n)
        rows = [(f.severity, f.code, f.where, f.message, f.fix) for f in self]
        head = ("severity", "code", "where", "what", "how to fix it")
        return block(found or "no findings", table(head, rows) if rows else "")


def part_name(kind, name) -> str:
    """Part as findings name it, such as ``body 'hand'``; long names are cut."""
    return f"{kind} {short(name)}"


def finding_of(code, part, message, place=None, *, severity=None) -> Finding:
    """Finding by its code, with its usual severity unless another is given."""
    return Finding(severity or KINDS[code].severity, code, part, message, place or NOWHERE)


def in_order(findings) -> Findings:
    """Findings sorted: the worst first, then effects on motion, then by place.

    The same finding comes once. What the model leaves out is first of the warnings if it changes
    motion, and otherwise last of the notes, in the order of the loader.
    """
    rank = {severity: n for n, severity in enumerate(SEVERITIES)}
    unique = {(f.code, f.part, f.message, f.place): f for f in findings}

    def key(f):
        place = {"ignored-motion": -1, "ignored": 1}.get(f.code, 0)
        effect = EFFECTS.index(KINDS[f.code].effect)
        return rank[f.severity], place, effect, 0 if place else f.place.line

    return Findings(sorted(unique.values(), key=key))
