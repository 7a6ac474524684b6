"""Rows of groups: their velocities, and what impulses on them give.

Most groups are contacts of free bodies: blocks of 3 by 6.
"""

# Types of procedures: see kinetree.codegen.procedures.
# pyright: reportIndexIssue=false, reportInvalidTypeArguments=false, reportInvalidTypeForm=false
# pyright: reportArgumentType=false

from kinetree.codegen.procedures import procedure, vector, view
from kinetree.contact.newton.problem import Problem

__all__ = ["give", "row_velocity", "times_six"]


@procedure(inline=True)
def times_six(a: "float[6]", b: "float[6]") -> float:
    """The scalar product, of pairs of numbers at once."""
    s = a[0:2] * b[0:2] + a[2:4] * b[2:4] + a[4:6] * b[4:6]
    return s[0] + s[1]


@procedure
def row_velocity(problem: Problem, g: int, v: "float[:]", w: "float[:]") -> None:
    """``w = J v`` of a group."""
    dim = problem.dim[g]
    if dim == 3:
        w0 = w1 = w2 = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            node = problem.entry_node[e]
            count = problem.node_count[node]
            J = view(problem.J, problem.entry_at[e])
            x = view(v, problem.node_first[node])
            if count == 6:  # a free body
                w0 += times_six(view(J, 0, 6), view(x, 0, 6))
                w1 += times_six(view(J, 6, 6), view(x, 0, 6))
                w2 += times_six(view(J, 12, 6), view(x, 0, 6))
                continue
            for c in range(count):
                w0 += J[c] * x[c]
                w1 += J[count + c] * x[c]
                w2 += J[2 * count + c] * x[c]
        w[:3] = vector(w0, w1, w2)
    else:
        for r in range(dim):
            w[r] = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            node = problem.entry_node[e]
            count = problem.node_count[node]
            x = view(v, problem.node_first[node])
            for r in range(dim):
                J = view(problem.J, problem.entry_at[e] + r * count)
                s = 0.0
                for c in range(count):
                    s += J[c] * x[c]
                w[r] += s


@procedure
def give(problem: Problem, T: "float[:]", g: int, p: "float[:]", out: "float[:]") -> None:
    """``out -= T' p`` of a group, with blocks ``T`` where ``J`` has them."""
    dim = problem.dim[g]
    for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
        node = problem.entry_node[e]
        count = problem.node_count[node]
        J = view(T, problem.entry_at[e])
        x = view(out, problem.node_first[node])
        if dim == 3 and count == 6:  # a free body
            six = view(x, 0, 6)
            six -= view(J, 0, 6) * p[0] + view(J, 6, 6) * p[1] + view(J, 12, 6) * p[2]
        elif dim == 3:
            for c in range(count):
                x[c] -= J[c] * p[0] + J[count + c] * p[1] + J[2 * count + c] * p[2]
        else:
            for r in range(dim):
                for c in range(count):
                    x[c] -= J[r * count + c] * p[r]
