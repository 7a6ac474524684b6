"""The four states of a unilateral constraint — RBDA §11.4, Fig. 11.4.

    1   apart      the gap is open
    2a  hitting    it is closed, and closing on: an impact is due
    2b  leaving    it is closed, and opening: as good as apart
    3   touching   it is closed and stays so for the moment: contact forces decide what is next

States 2a and 2b last an instant. What counts as zero is a matter of tolerances.
"""

import numpy as np

__all__ = ["APART", "HITTING", "LEAVING", "TOUCHING", "contact_states"]

APART, HITTING, LEAVING, TOUCHING = "1", "2a", "2b", "3"


def contact_states(gap, zeta, gap_tolerance=1e-6, velocity_tolerance=1e-6) -> tuple[str, ...]:
    """The states of contacts, as RBDA Fig. 11.4 numbers them.

    Args:
        gap: distances [m], (n,).
        zeta: their rates [m/s], (n,).
        gap_tolerance: what counts as closed [m].
        velocity_tolerance: what counts as neither closing nor opening [m/s].
    """
    open_, closing, opening = (
        gap > gap_tolerance,
        zeta < -velocity_tolerance,
        zeta > velocity_tolerance,
    )
    found = np.select([open_, closing, opening], [APART, HITTING, LEAVING], TOUCHING)
    return tuple(str(s) for s in found)
