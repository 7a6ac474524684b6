"""Forces that follow the mean velocity of a step: velocity products, and those of fluids."""

from kinetree.codegen.procedures import procedure
from kinetree.codegen.tied import run
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.parts import Kernels, StepState


@procedure
def have_bias(s: StepState, m: Mechanism, k: Kernels):
    """Set ``bias``: velocity-product and gravity forces less fluid forces, at mean velocity."""
    run(k.bias)
    if s.immersed == 1:
        run(k.fluid)
        s.bias[: m.nv] -= s.fluid[: m.nv]
