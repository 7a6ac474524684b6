"""Conditions that code checks while it runs: those of the program, and that all is finite."""

from kinetree.codegen.render.llvm_results import ResultWriter

__all__ = ["CheckWriter"]

_SUMS = 4  # independent sums, so that none waits for another


class CheckWriter(ResultWriter):
    """Lines of a function with conditions, which are counted once at its end.

    Args:
        program: what is computed.
        v: the vectors it is computed in.
        stores: where each root goes.
        watch: which values must be finite, or bounded.
    """

    def __init__(self, program, v, stores, watch):
        super().__init__(program, v, stores)
        self.watch = watch
        self.checks = {node for node, _ in program.checks}
        self.watched, self.sums, self.conditions = set(), {}, []

    def _watch(self, i):
        """Take note of an input or result.

        A sum of x · 0 stays zero while all x are finite, one of x² small while all x are.
        """
        if i in self.watched:
            return
        v, t, zero = self.v, self.v.type, self.v.constant(0.0)
        k = len(self.watched) % _SUMS
        total = self.sums.get(k, zero)
        factor = zero if self.watch.bound is None else f"%v{i}"
        self.watched.add(i)
        self._emit(f"%z{i} = call {t} @llvm.fma.{v.suffix}({t} %v{i}, {t} {factor}, {t} {total})")
        self.sums[k] = f"%z{i}"

    def _check_finite(self):
        """Count the vector as bad when something watched in this block is not finite."""
        if not self.sums:
            return
        v, (total, *others) = self.v, self.sums.values()
        for k, other in enumerate(others):
            self._emit(f"%sum{k} = fadd {v.type} {total}, {other}")
            total = f"%sum{k}"
        bound = self.watch.bound
        most = v.constant(0.0 if bound is None else bound**2)
        self._emit(f"%finite = fcmp ole {v.type} {total}, {most}")
        self.conditions.append("%finite")

    def _count_unless_all_hold(self):
        """Add one to the status unless every condition of this block holds in every lane."""
        if not self.conditions:
            return
        v, (together, *others) = self.v, self.conditions
        for k, condition in enumerate(others):
            self._emit(f"%both{k} = and {v.mask} {together}, {condition}")
            together = f"%both{k}"
        self._emit(f"%good = call i1 @llvm.vector.reduce.and.v{v.lanes}i1({v.mask} {together})")
        self._emit("br i1 %good, label %done, label %bad")
        self.lines.append("bad:")
        self._emit("%count = atomicrmw add ptr %status, i64 1 monotonic")
        self._emit("br label %done")
        self.lines.append("done:")
