"""The end of a step: impulses at joints, the ledger of work, and what is expected of the next."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.engine import moving
from kinetree.contact.engine.actuator_tables import Actuators
from kinetree.contact.engine.energy import Balance
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.parts import Parts, StepState
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.newton.problem import problem_of, with_room

PARENT = [-1, 0, 1, 1, -1, 4]
NV, H = len(PARENT), 0.02
TREE = np.array([0, 0, 0, 0, 1, 1])


def a_problem(rng):
    """Groups of 3, 1 and 6 rows on some nodes, and their dense matrices."""
    p = problem_of(PARENT)
    with_room(p, 10, 60, 60, 500)
    fixed, whole, at, entry = np.zeros(500), [], 0, 0
    for g, dim in enumerate((3, 1, 6)):
        p.dim[g], p.row_first[g + 1] = dim, p.row_first[g] + dim
        J, F = np.zeros((2, dim, NV))
        for a in sorted(rng.choice(p.nodes, 2, replace=False)):
            p.entry_node[entry], p.entry_at[entry] = a, at
            size, columns = p.node_count[a], p.node_first[a] + np.arange(p.node_count[a])
            p.J[at : at + dim * size], fixed[at : at + dim * size] = rng.normal(
                size=(2, dim * size)
            )
            J[:, columns] = p.J[at : at + dim * size].reshape(dim, size)
            F[:, columns] = fixed[at : at + dim * size].reshape(dim, size)
            entry, at = entry + 1, at + dim * size
        p.entry_first[g + 1] = entry
        whole.append((J, F))
    p.groups = 3
    p.impulse[:10] = rng.choice([0.0, 1.0], 10) * rng.normal(size=10)
    return p, fixed, *(np.vstack(x) for x in zip(*whole, strict=True))


@pytest.mark.parametrize("prescribed", [0, 1])
def test_impulses_of_rows_at_the_joints(prescribed, rng):
    for _ in range(10):
        p, fixed, J, F = a_problem(rng)
        x = np.full(NV, 7.0)
        moving.impulses_at_joints(Mechanism(nv=NV, prescribed=prescribed), p, fixed, x)
        assert_close(x, (J + prescribed * F).T @ p.impulse[:10], scale=10.0)


def test_the_ledger_of_a_step(rng):
    """Work of forces and of rows at the mean velocity, and what contacts lose beside it."""
    for _ in range(10):
        p, fixed, J, _ = a_problem(rng)
        names = ("v_m", "after", "mean", "tau", "spring", "fluid", "across", "resist", "drive", "x")
        s = StepState(h=H, residuals=np.full(10, 7.0), **{n: rng.normal(size=NV) for n in names})
        s.drive[:] = 0.0
        across = s.across.copy()
        m = Mechanism(nv=NV, lead=rng.normal(size=NV), lag=rng.normal(size=NV))
        rows = Rows(fixed=fixed, contacts=1, scale=rng.uniform(0.5, 2, (3, 6)),
                    bend=rng.normal(size=(3, 3)))  # fmt: skip
        b = Balance(joints=np.ones(2), rows=np.ones(2))
        p.velocity_error, p.cone_error, p.complementarity = 0.1, 0.2, 0.3
        moving.account(Parts(step=s, mechanism=m, problem=p, rows=rows, balance=b,
                             drives=Actuators(), springs=Actuators()))  # fmt: skip
        resist = m.lead * s.v_m + m.lag * (s.after - s.v_m) + across
        assert_close(s.resist, resist, scale=10.0)
        lam = p.impulse[:10]
        x = J.T @ lam
        force = H * (s.tau + s.spring + s.fluid - resist)
        assert_close(b.joints, np.bincount(TREE, force * s.mean), scale=10.0)
        assert_close(b.rows, np.bincount(TREE, x * s.mean), scale=10.0)
        assert_close(s.work, (force + x) @ s.mean, scale=10.0)
        bends = lam[:3] @ (rows.scale[0, :3] * rows.bend[0]) + lam[3] * rows.bend[1, 0]
        bends += lam[4:7] @ rows.bend[2]
        contact = x @ s.after + bends
        touching = float(np.any(lam))
        expected = [0.1, 0.2, 0.3, 7, 7, contact, contact - x @ s.mean, 0, 0, touching]
        assert_close(s.residuals, expected, scale=10.0)


@pytest.mark.parametrize("conserving", [0, 1])
def test_the_change_to_expect_of_velocities(conserving, rng):
    """That of this step, unless it was a jump or had to be undone."""
    jumps = set()
    for _ in range(40):
        names = ("after", "v_m", "free", "last", "change")
        s = StepState(conserving=conserving, **{n: rng.normal(size=NV) for n in names})
        s.last += s.after - s.v_m - s.last * rng.choice([0.1, 1, 5], NV)
        last = s.last.copy()
        b = Balance(flown=rng.choice([1.0, 0.9], 2))
        moving.foresee(s, problem_of(PARENT), b)
        change = s.after - s.v_m
        change[(b.flown[TREE] < 1) & bool(conserving)] = 0.0
        free = s.free - s.v_m
        jumped = np.abs(change - last) > np.abs(change) / 2 + np.abs(free)
        assert_close(s.change, np.where(jumped, free, change), scale=1.0)
        assert_close(s.last, change, scale=1.0)
        jumps |= set(jumped.tolist())
    assert jumps == {True, False}
