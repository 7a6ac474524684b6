"""What tests of controllers and plans share as fixtures."""

import pytest

import kinetree as kt


@pytest.fixture(scope="session")
def hopper():
    """Two masses on a vertical rail; the lower one is a foot."""
    b = kt.ModelBuilder("hopper").body(
        "trunk", joint=kt.Prismatic("z"), inertia=kt.shapes.box(0.2, 0.1, 0.1, mass=3.0)
    )
    b.body("leg", on="trunk", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.05, mass=0.5))
    return b.build()


@pytest.fixture(scope="session")
def dog():
    return kt.samples.quadruped()
