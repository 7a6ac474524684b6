"""Algorithms for closed chains: loops as constraints, their ranks, and forward dynamics under them.

| module | what it has |
|---|---|
| `constraints` | loops as equations `K qdd = k`, joints that close loops |
| `forces` | variables of loop joints, forces along them |
| `scaling`, `rank`, `samples` | units of loops, which constraints count, closed configurations |
| `plan`, `elimination`, `forward_dynamics` | the compiled solver in use, for a known rank |
| `joint_space` | the solver that decides ranks for every sample; closure checks |
| `maximal`, `divide_and_conquer` | other forward dynamics of the book, used for comparison |
| `systems`, `subspace` | equations of motion under constraints in general, RBDA chapter 3 |
| `links` | closed chains with virtual joints, Spencer appendix B |
"""

from kinetree.spelling import module_of

_DEPRECATED = {"link_variations": "kinetree.textbook.link_variations"}


def __getattr__(name):
    return module_of(__name__, name, _DEPRECATED)
