"""Fixtures that several tests of algorithms share."""

import pytest
from support import linkages

LINKAGES = {
    "four-bar": (linkages.four_bar, linkages.four_bar_positions),
    "crank-slider": (linkages.crank_slider, linkages.crank_slider_positions),
}


@pytest.fixture(params=LINKAGES)
def linkage(request):
    return LINKAGES[request.param]
