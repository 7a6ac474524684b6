"""Contact impulses by Newton's method in the velocities, for problems of any size.

``problem`` states the problem, ``pattern`` splits it into islands and, with ``cholesky``, factors
matrices with the sparsity of trees and contacts, ``cones`` has the laws, ``equations`` their errors
and the matrix, ``sweeps`` a start, ``newton`` solves, ``interior`` where it fails. All of it is
procedures: compiled once for every robot and world.
"""
