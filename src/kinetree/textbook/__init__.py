"""Algorithms of the literature beside those in use: variants, originals, derivations.

They are there to be read next to the book and as independent answers for the tests:
``kt.textbook.rnea_3d`` is the recursive Newton-Euler algorithm with three-dimensional vectors, as
it was first published. No public function is computed by these texts, unless a caller asks for one
by name: the methods of ``kt.loops.solve``, and what ``kt.loops`` lists. docs/book.md maps passages
to texts.
"""

from kinetree.spelling import module_of

_DEPRECATED = {
    "constraint_kinds": f"{__name__}.constrained_body",
    "derivation": f"{__name__}.aba_variants",
    "rigid_body": f"{__name__}.constrained_body",
}


def __getattr__(name):
    return module_of(__name__, name, _DEPRECATED)
