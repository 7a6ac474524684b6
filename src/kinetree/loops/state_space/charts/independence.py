"""Independent constraints for a chart, or the error that says why there are too few."""

from kinetree.errors import SingularError

__all__ = ["independent_system"]


def independent_system(system, q, rank=None):
    """The system without its redundant constraints; ``rank`` is the number there should be."""
    found = system.independent(q)
    if rank is not None and found.m < rank:
        raise SingularError(
            f"only {found.m} of {rank} constraints are independent here: the mechanism is at a "
            f"kinematic singularity, where no chart of its states exists; kt.loops.SVDForm passes "
            f"through it"
        )
    return found
