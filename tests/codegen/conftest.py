"""Here code is compiled as it is for users; elsewhere faster, to the same bits."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _compiled_as_for_users():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KINETREE_OPTIMIZATION", raising=False)
        yield
