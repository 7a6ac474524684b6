"""Newton's method with a barrier on problems of multiple shooting, as procedures.

An iteration linearizes steps and constraints, measures errors, lowers the barrier where they are
small, solves a linear-quadratic problem for a direction, and goes along it as far as a merit
function falls. ``advance`` is the loop; ``kinetree.control.iterations`` makes its records.
"""
