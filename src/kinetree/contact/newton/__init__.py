"""Contact impulses by Newton's method in the velocities, for problems of any size.

``problem`` states the problem, ``pattern`` splits it into islands and, with ``cholesky``, factors
matrices with the sparsity of trees and contacts, ``cones`` has the laws, ``sweeps`` a start,
``newton`` solves. All of it is procedures: compiled once for every robot and world.
"""
