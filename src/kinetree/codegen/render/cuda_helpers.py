"""The function of warps without samples: they take part in routines, and skip all text between.

A block has more warps than its samples fill. Those without samples meet the others at every
barrier: where loops go on, and where routines begin and end.
"""

import re

_LOOP = re.compile(r"for \(int (?P<counter>\w+) = 0; __syncthreads_or\(.*\); \w+\+\+\) \{$")


def helping_lines(lines, enlist: str) -> list[str]:
    """CUDA lines of a function for warps without samples, from those of the function with them.

    Args:
        lines: of the function, indented by their depth.
        enlist: text of the call that begins a routine, up to its arguments.
    """
    found, k = [], 0
    while k < len(lines):
        line, end = lines[k].strip(), k
        if line.endswith("{"):
            end = _closing(lines, k)
        loop = _LOOP.match(line)
        indent = lines[k][: _indent(lines[k])]
        if loop:
            found.append(f"{indent}while (__syncthreads_or(0)) {{")
            found += [*helping_lines(lines[k + 1 : end], enlist), lines[end]]
        elif line == "{" and enlist in lines[k + 1]:
            asked = lines[k + 1].partition(enlist)[0] + f"{enlist}0, 0);"
            found += [lines[k], asked, *lines[k + 2 : end + 1]]
        elif line == "{":
            found += helping_lines(lines[k + 1 : end], enlist)
        k = end + 1
    return found


def _indent(line):
    """Number of blanks at the beginning of a line."""
    return len(line) - len(line.lstrip())


def _closing(lines, k):
    """Number of the line that closes the block that a line opens."""
    deep = _indent(lines[k])
    return next(n for n in range(k + 1, len(lines)) if lines[n] == " " * deep + "}")
