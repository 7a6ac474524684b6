"""Derivatives of functions that users write: traced, differentiated exactly, compiled."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import jvp

__all__ = [
    "Relation", "derived_constraint", "derived_gradient", "derived_relation", "given_relation",
]  # fmt: skip


def derived_constraint(g):
    """``g``, ``G = dg/dq`` and the product ``Gdot v``, compiled, from a function of ``q``."""
    g = _kernel(g)
    along = jvp(g, wrt="q")

    @kernel
    def rate(q, v):
        return along(q, tangents=v)

    acceleration = jvp(rate, wrt="q")
    return g, differentiate(g, wrt="q"), lambda q, v: acceleration(q, v, tangents=v)


def derived_gradient(energy) -> Callable:
    """Derivative of a function of ``q, v`` with respect to both, (2n,)."""
    slopes = differentiate(_kernel(energy), wrt=("q", "v"))
    return lambda q, v: np.concatenate(slopes(q, v))


class Relation(NamedTuple):
    """A function ``R(x, y)`` with the derivatives that a chart needs."""

    value: Callable
    """``R``, a function of ``x, y``."""
    first: Callable
    """Its derivative with respect to ``x``."""
    second: Callable
    """Its derivative with respect to ``y``."""
    cross: Callable
    """Function of ``x, y, v, w, dx, dy``: the rate of ``first v + second w`` along ``dx, dy``."""


def derived_relation(R, model=None, x="q") -> Relation:
    """A relation from a function of ``x`` and ``y`` written as for ``@kt.kernel``.

    Args:
        R: function of ``(q, y)``, or of ``(model, q, y)`` if a model is given.
        model: what the function takes first.
        x: name of its first array.
    """
    R = _kernel(R)
    lead = () if model is None else (model,)
    first, second, along = differentiate(R, wrt=x), differentiate(R, wrt="y"), jvp(R, wrt=(x, "y"))

    if model is None:
        rate = kernel(lambda q, y, v, w: along(q, y, tangents=(v, w)))
    else:
        rate = kernel(lambda model, q, y, v, w: along(model, q, y, tangents=(v, w)))
    cross = jvp(rate, wrt=("q", "y"))
    return Relation(
        lambda q, y: R(*lead, q, y),
        lambda q, y: first(*lead, q, y),
        lambda q, y: second(*lead, q, y),
        lambda q, y, v, w, dq, dy: cross(*lead, q, y, v, w, tangents=(dq, dy)),
    )


def given_relation(R, first, second, bias) -> Relation:
    """A relation from functions of ``x, y`` that are not written for tracing.

    Args:
        R: the relation.
        first: its derivative with respect to ``x``.
        second: its derivative with respect to ``y``.
        bias: function of ``x, y, v, w``: the second derivative of ``R`` along ``(v, w)``, zero
            where ``R`` is linear. Being a quadratic form, it gives the bilinear one.
    """

    def cross(x, y, v, w, dx, dy):
        return (bias(x, y, v + dx, w + dy) - bias(x, y, v - dx, w - dy)) / 4

    return Relation(R, first, second, cross)


def _kernel(function):
    return function if hasattr(function, "bind") else kernel(function)
