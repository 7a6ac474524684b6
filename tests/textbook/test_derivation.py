"""Assembly formulae by systematic elimination — RBDA §7.4, (7.51)–(7.56)."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import Pair

from kinetree.errors import SingularError
from kinetree.textbook import aba_variants


def given_equations(p, *, inverted, implicit):
    handles = [(p.Phi1, p.b1), (p.Phi2, p.b2)] if inverted else [(p.I1, p.p1), (p.I2, p.p2)]
    joint = (p.T, p.Ta, p.c, p.tau) if implicit else (p.S, p.c, p.tau)
    return aba_variants.assembly_equations(*handles, joint, inverted=inverted, implicit=implicit)


@pytest.mark.covers("RBDA 7.4", "RBDA Table 7.2", by=aba_variants.derive)
@pytest.mark.parametrize("n", range(7))
def test_elimination_reproduces_every_row_of_the_table(n, rng):
    p = Pair(rng, n)
    cases = {
        (False, False): aba_variants.standard(p.I1, p.p1, p.I2, p.p2, p.S, p.c, p.tau),
        (True, True): aba_variants.variant_1(p.Phi1, p.b1, p.Phi2, p.b2, p.T, p.Ta, p.c, p.tau),
        (False, True): aba_variants.variant_2(p.I1, p.p1, p.I2, p.p2, p.T, p.Ta, p.c, p.tau),
    }
    for (inverted, implicit), formulae in cases.items():
        equations = given_equations(p, inverted=inverted, implicit=implicit)
        wanted, given = ("a1", "f") if inverted else ("f", "a1")
        M, m = aba_variants.derive(equations, wanted, given)
        assert_close(M, formulae.matrix, condition=p.condition)
        assert_close(m, formulae.bias, condition=p.condition, scale=1 + np.abs(M).max())


@pytest.mark.covers("RBDA 7.4", by=aba_variants.derive)
def test_elimination_finds_the_fourth_combination_too(rng):
    """Inverse inertias through S, which the book leaves out."""
    p = Pair(rng, 2)
    equations = given_equations(p, inverted=True, implicit=False)
    Phi, b = aba_variants.derive(equations, "a1", "f")
    IA, pA, _, _ = aba_variants.standard(p.I1, p.p1, p.I2, p.p2, p.S, p.c, p.tau)
    assert_close(Phi @ IA, np.eye(6), condition=p.condition)
    assert_close(b, -Phi @ pA, condition=p.condition, scale=1 + np.abs(b).max())


@pytest.mark.covers("RBDA 7.4", by=aba_variants.composite)
def test_the_composite_system_of_the_standard_case_is_the_printed_one(rng):
    p = Pair(rng, 1)
    equations = given_equations(p, inverted=False, implicit=False)
    rows, columns = aba_variants.orders(equations, "f", "a1")[0]
    A, constant, B = aba_variants.composite(equations, rows, columns, "a1")
    pattern = [[block is not None for block in row] for row in A]
    printed = np.array(
        [[1, 1, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 0]]
    )
    assert columns == ["f", "f1", "f2", "a2", "qdd"]
    assert np.array_equal(pattern, printed.astype(bool))
    assert np.array_equal(A[2][3], -p.I2)
    assert np.array_equal(A[3][4], -p.S)
    assert np.array_equal(A[4][2], p.S.T)
    assert [b is not None for b in B] == [False, True, False, True, False]
    for value, expected in zip(constant, (np.zeros(6), p.p1, p.p2, p.c, p.tau), strict=True):
        assert np.array_equal(value, expected)


def test_equations_that_determine_nothing_are_rejected(rng):
    p = Pair(rng, 2)
    p.I2 = np.zeros((6, 6))
    with pytest.raises(SingularError) as error:
        aba_variants.derive(given_equations(p, inverted=False, implicit=False), "f", "a1")
    assert str(error.value) == (
        "the equations do not determine 'f' as a function of 'a1': in every order some pivot "
        "block is singular"
    )
