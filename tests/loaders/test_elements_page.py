"""docs/elements.md is current, and the readers have an answer for every element."""

import mujoco
import pytest
from loaders import elements_page
from loaders.elements_page import PAGE, mjcf_rows, section_of, sections

UNKNOWN = "kinetree does not use it [motion]"
KNOWN = {
    "acceleration", "wind", "population", "state", "enable_wind", "kinematic", "density",
    "auto_inertia_params", "fluid_added_mass", "velocity_decay", "stiffness", "dissipation",
}  # fmt: skip
"""What has no other reason in URDF and SDF than that kinetree does not have it."""


@pytest.mark.parametrize("title", [*sections()])
def test_the_page_is_current(title):
    rows = sections()[title]
    page = PAGE.read_text(encoding="utf-8")
    if title.startswith("MJCF") and title not in page:  # another MuJoCo has another schema
        assert "## MJCF, by the schema of MuJoCo " in page
        return
    assert section_of(title, rows) in page, "run python docs/make_elements.py"


def test_every_element_of_mjcf_has_a_reason():
    unknown = {row.path: row.notices[UNKNOWN] for row in mjcf_rows() if UNKNOWN in row.notices}
    assert unknown == {}


def test_the_whole_schema_is_walked():
    tags = {path[-1] for path, _ in elements_page.schema()}
    assert {"mujoco", "flexcomp", "spatial", "connect", "key", "orthographic"} - tags == {
        "orthographic"  # an attribute
    }
    words = mujoco.mj_printSchema(False, False).split()
    listed = sum(len(attributes) + 2 for _, attributes in elements_page.schema())
    assert listed == len(words)


def test_elements_of_urdf_and_sdf_without_a_reason_are_known():
    for title, rows in sections().items():
        if not title.startswith("MJCF"):
            for row in rows:
                names = row.notices.get(UNKNOWN)
                last = row.path.rpartition("/")[2]
                assert names is None or last in KNOWN or set(names) & KNOWN, row
