"""Piles come to rest, with forces that stay: no contact loses its force by another name."""

import numpy as np
import pytest
from truth.piles import poured
from truth.registry import mesh_file

from kinetree.model import geometry as g

SHAPES = {
    "cylinders": [g.Cylinder(0.05, 0.1)] * 16,
    "rods": [g.Cylinder(0.02, 0.2)] * 16,
    "plates": [g.Box((0.15, 0.1, 0.012))] * 20,
    "cubes as meshes": [g.Mesh(mesh_file("cube"), scale=(0.6, 0.6, 0.6))] * 14,
    "several": [g.Box((0.1, 0.08, 0.06)), g.Cylinder(0.04, 0.1), g.Capsule(0.03, 0.08)] * 5,
}


def normal_forces(world) -> dict[str, float]:
    """Sums of the forces between shapes along their normals [N]."""
    contacts, found = world.contacts(), {}
    for name, n, f in zip(contacts.names, contacts.normal, contacts.force, strict=True):
        pair = name.rpartition(":")[0]
        found[pair] = found.get(pair, 0.0) + abs(float(n @ f))
    return found


WIDTHS = 0.217, 0.229, 0.223
"""Of bins [m]. In some one cylinder or rod rolls on for long, in which depends on every bit."""


def changes_at_rest(name, width, mass=0.4) -> float:
    """Change of forces in a step, after 4 s: typical of 200 steps, of the weight of the pile."""
    world = poured(SHAPES[name], mass, width, 1).world()
    world.step(1800)
    changes, last = [], normal_forces(world)
    for _ in range(200):
        world.step()
        now = normal_forces(world)
        changes.append(sum(abs(now.get(k, 0) - last.get(k, 0)) for k in now.keys() | last.keys()))
        last = now
    assert np.quantile(np.abs(world.qd), 0.75) < 1e-6  # most bodies are at rest
    return float(np.median(changes)) / (len(SHAPES[name]) * mass * 9.81)


@pytest.mark.filterwarnings("ignore:step .* cannot be trusted")  # of overlaps while they fall
@pytest.mark.parametrize("name", SHAPES)
def test_piles_come_to_rest(name):
    """Forces do not jump: half of the weight and more does where contacts lose their names."""
    found = []
    for width in WIDTHS:
        found.append(changes_at_rest(name, width))
        assert found[-1] < 0.05
        if found[-1] < 1e-3:
            return
    pytest.fail(f"no pile came to rest: forces change by {found} of the weight")


def test_a_memory_without_places_goes_on():
    """As of files of an earlier version: contacts are known by feature, forces stay."""
    world = poured(SHAPES["plates"][:3], 0.4, 0.22, 1).world()
    world.step(900)
    state = world.state
    memory = {k: v for k, v in state.memory.items() if k not in ("spot", "bent")}
    assert len(memory) == len(state.memory) - 2
    world.set_state(state._replace(memory=memory))
    world.step(5)
    ground = sum(v for k, v in normal_forces(world).items() if k.startswith("ground"))
    assert ground == pytest.approx(3 * 0.4 * 9.81, rel=1e-6)
