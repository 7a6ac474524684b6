"""What tests of contact share as fixtures."""

import pytest
from support.contact_scenes import wedge_in


@pytest.fixture(scope="session")
def wedge(tmp_path_factory):
    """A mesh of a prism with a dent."""
    return wedge_in(tmp_path_factory.mktemp("mesh"))
