"""The table of a model."""

from fractions import Fraction

from kinetree.model.describe import summary
from kinetree.samples import four_bar, pendulum


def test_summary_of_a_linkage():
    assert summary(four_bar()) == four_bar().summary() == "\n".join(
        [
            "Model('four-bar': 3 bodies, nq=3, nv=3, 1 loop)",
            "body  name     parent  joint     dof  mass [kg]",
            "   0  base",
            "   1  crank    base    Revolute    1        0.4",
            "   2  coupler  crank   Revolute    1          1",
            "   3  rocker   base    Revolute    1        0.8",
            "total mass 2.2 kg",
            "loop pin: Revolute from coupler to rocker",
        ]
    )  # fmt: skip


def test_summary_names_frames_and_takes_exact_numbers():
    assert summary(pendulum()).endswith("frames: tip")
    assert "6/5" in summary(pendulum().map_numbers(lambda x: Fraction(x).limit_denominator(1000)))
