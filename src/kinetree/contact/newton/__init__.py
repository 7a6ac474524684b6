"""Contact impulses by Newton's method in the velocities, for problems of any size.

``problem`` states the problem, ``pattern`` splits it into islands and, with ``cholesky``, factors
matrices with the sparsity of trees and contacts, ``cones`` has the laws, ``equations`` their errors
and the matrix, ``sweeps`` and ``start`` a start, ``steps`` a step of Newton's method. Where that
fails, ``interior`` follows another path by ``directions``, and by its ``arc``. ``island`` puts them
together, with ``retries``; ``newton`` solves all islands. All of it is procedures: compiled once
for every robot and world.
"""
