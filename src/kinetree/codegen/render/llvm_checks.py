"""Conditions that code checks while it runs: those of the program, and that all is finite."""


# --- How results get to memory: in pairs where they come so, constants and zeros ahead of all else

_PATIENCE = 120  # lines of text that a result waits for its neighbour


class ResultWriter:
    """Lines of a function, and the results among them.

    Args:
        program: what is computed.
        v: the vectors it is computed in.
        stores: where each root goes: node -> [(argument number, offset), ...].
        first: of code that other code calls, the number before each argument: all arguments are
            then vectors in one array, the inputs before the results. None for a frame of pointers.
    """

    def __init__(self, program, v, stores, first=None):
        self.program, self.v, self.stores, self.first = program, v, stores, first
        self.nodes = program.graph.nodes
        self.lines, self.named, self.waiting = [], set(), {}

    def _outputs(self):
        """Numbers of the arguments that are results."""
        first = len(self.program.inputs)
        return range(first, first + len(self.program.outputs))

    def _emit(self, text):
        self.lines.append("  " + text)

    def _pointer(self, argument, lane):
        """Pointer to one sample of an argument, from the frame."""
        name = f"%p{argument}_{lane}"
        if name not in self.named:
            slot = argument * self.v.lanes + lane
            self._emit(f"{name}_at = getelementptr ptr, ptr %frame, i64 {slot}")
            self._emit(f"{name} = load ptr, ptr {name}_at, !invariant.load !0")
            self.named.add(name)
        return name

    def _result(self, target, argument, offset):
        """Write a result, together with its neighbour if that is just there: half the stores."""
        if self.first is not None:
            n, t = f"{target}_{argument}_{offset}", self.v.type
            at = self.first[argument] + offset
            self._emit(f"%d{n} = getelementptr {t}, ptr %frame, i64 {at}")
            self._emit(f"store {t} %v{target}, ptr %d{n}")
            return
        self._flush(older_than=len(self.lines) - _PATIENCE)
        partner = self.waiting.pop((argument, offset ^ 1), None)
        if partner is None:
            self.waiting[argument, offset] = (target, len(self.lines))
            return
        v, (even, odd) = self.v, (partner[0], target) if offset & 1 else (target, partner[0])
        for lane in range(v.lanes):
            n = f"{even}_{odd}_{argument}_{offset}_{lane}"
            lanes = f"<2 x i32> <i32 {lane}, i32 {v.lanes + lane}>"
            self._emit(f"%e{n} = shufflevector {v.type} %v{even}, {v.type} %v{odd}, {lanes}")
            at = self._pointer(argument, lane)
            self._emit(f"%d{n} = getelementptr {v.scalar}, ptr {at}, i64 {offset & ~1}")
            self._emit(f"store <2 x {v.scalar}> %e{n}, ptr %d{n}, align {v.size}")

    def _flush(self, older_than):
        """Write results whose neighbour has not come."""
        for place, (target, since) in list(self.waiting.items()):
            if since > older_than:
                break  # they are in order of arrival
            del self.waiting[place]
            argument, offset = place
            for lane in range(self.v.lanes):
                n = f"{target}_{argument}_{offset}_{lane}"
                self._emit(f"%e{n} = extractelement {self.v.type} %v{target}, i32 {lane}")
                self._store(n, argument, offset, lane, f"%e{n}")

    def _store(self, n, argument, offset, lane, value):
        v = self.v
        pointer = self._pointer(argument, lane)
        self._emit(f"%d{n} = getelementptr {v.scalar}, ptr {pointer}, i64 {offset}")
        self._emit(f"store {v.scalar} {value}, ptr %d{n}")

    def _constant_outputs(self, which):
        """Results that do not depend on the inputs; first, so that zeros may overlap others.

        Code that calls other code knows those of it beforehand.
        """
        if self.first is not None:
            return
        v = self.v
        for k, argument in zip(self._outputs(), self.program.outputs, strict=True):
            if k not in which:
                continue
            constant = {
                offset: self.nodes[root][1]
                for root, places in self.stores.items()
                for output, offset in places
                if output == k and self.nodes[root][0] == "const"
            }
            cleared = self._clear(k, argument, [o for o, x in constant.items() if x == 0])
            for offset, x in constant.items():
                if x != 0 or not cleared:
                    for lane in range(v.lanes):
                        self._store(f"c{k}_{offset}_{lane}", k, offset, lane, v.number(x))

    def _clear(self, k, argument, zeros):
        """Zero a whole result at once when enough of it is zero."""
        if len(zeros) < 16 or 4 * len(zeros) < argument.size:
            return False
        for lane in range(self.v.lanes):
            pointer, size = self._pointer(k, lane), argument.size * self.v.size
            self._emit(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")
        return True


_SUMS = 4  # independent sums, so that none waits for another


class CheckWriter(ResultWriter):
    """Lines of a function with conditions, which are counted once at its end.

    Args:
        program: what is computed.
        v: the vectors it is computed in.
        stores: where each root goes.
        watch: which values must be finite, or bounded.
    """

    def __init__(self, program, v, stores, watch, first=None):
        super().__init__(program, v, stores, first)
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
