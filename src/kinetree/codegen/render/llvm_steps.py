"""``@step``: all blocks on one vector of samples, with loops around those that repeat."""

from kinetree.codegen.repeat import LoopStep

__all__ = ["first", "step"]

_ARGUMENTS = "ptr %frame, ptr %workspace, ptr %constants, ptr %status"


def step(v, plan, calls):
    """IR text of ``@step``; ``calls`` has the functions that it shares with other kernels."""
    lines = [f"define internal void @step({_ARGUMENTS}) {{", "entry:", *first(plan, calls)]
    writer = _StepWriter(v, lines)
    writer.steps(plan.steps, "entry")
    return "\n".join([*lines, "  ret void", "}"])


def first(plan, calls):
    """What comes before the blocks: the sines and cosines of all joint angles."""
    if not plan.angles:
        return []
    count = -(-len(plan.angles) // plan.angle_group) * plan.angle_group
    symbol = calls("angles", "void {}(ptr, ptr, ptr, ptr, i64)", plan.angle_group)
    given = f"ptr %frame, ptr %workspace, ptr %status, ptr @angle_places, i64 {count}"
    return [f"  call void {symbol}({given})"]


class _StepWriter:
    """Writes calls and loops; loops are numbered for the sake of their labels."""

    def __init__(self, v, lines):
        self.v, self.lines, self.count = v, lines, 0

    def steps(self, steps, label):
        """Run the steps; ``label`` is where we are. Returns where we are after them."""
        for item in steps:
            if isinstance(item, LoopStep):
                label = self._loop(item, label)
            else:
                self.lines.append(f"  call void @block_{item}({_ARGUMENTS})")
        return label

    def _loop(self, item, label):
        n, self.count = self.count, self.count + 1
        if item.times is None:
            self._slowest(n, item.slot)
        self.lines += [
            f"  br label %head{n}",
            f"head{n}:",
            f"  %run{n} = phi i64 [0, %{label}], [%next{n}, %again{n}]",
        ]
        self._compare(n, item.times)
        self.lines += [f"  br i1 %more{n}, label %body{n}, label %end{n}", f"body{n}:"]
        self.steps(item.steps, f"body{n}")
        self.lines += [
            f"  br label %again{n}",
            f"again{n}:",
            f"  %next{n} = add i64 %run{n}, 1",
            f"  br label %head{n}",
            f"end{n}:",
        ]
        return f"end{n}"

    def _compare(self, n, times):
        if times is not None:
            self.lines.append(f"  %more{n} = icmp slt i64 %run{n}, {times}")
            return
        scalar = self.v.scalar
        self.lines.append(f"  %done{n} = sitofp i64 %run{n} to {scalar}")
        self.lines.append(f"  %more{n} = fcmp olt {scalar} %done{n}, %times{n}")

    def _slowest(self, n, slot):
        """The largest count of all lanes; infinite ones, which input checks report, are zero."""
        v, t = self.v, self.v.type
        infinity, zero = v.constant(float("inf")), v.constant(0.0)
        self.lines += [
            f"  %slot{n} = getelementptr {t}, ptr %workspace, i64 {slot}",
            f"  %counts{n} = load {t}, ptr %slot{n}",
            f"  %finite{n} = fcmp olt {t} %counts{n}, {infinity}",
            f"  %kept{n} = select {v.mask} %finite{n}, {t} %counts{n}, {t} {zero}",
            f"  %times{n} = call {v.scalar} @llvm.vector.reduce.fmax.{v.suffix}({t} %kept{n})",
        ]
