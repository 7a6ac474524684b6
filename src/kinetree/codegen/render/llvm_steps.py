"""``@step``: all blocks on one vector of samples, with loops around those that repeat."""

from kinetree.codegen.repeat import LoopStep

__all__ = ["step"]

_ARGUMENTS = "ptr %frame, ptr %workspace, ptr %constants, ptr %status"


def step(v, plan):
    """IR text of ``@step``."""
    lines = [f"define internal void @step({_ARGUMENTS}) {{", "entry:"]
    if plan.angles:
        lines.append("  call void @angles(ptr %frame, ptr %workspace, ptr %status)")
    writer = _StepWriter(v, lines)
    writer.steps(plan.steps, "entry")
    return "\n".join([*lines, "  ret void", "}", *_declarations(v, plan)])


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


def _declarations(v, plan):
    if not any(_counted(plan.steps)):
        return []
    return [f"declare {v.scalar} @llvm.vector.reduce.fmax.{v.suffix}({v.type})"]


def _counted(steps):
    for item in steps:
        if isinstance(item, LoopStep):
            yield item.times is None
            yield from _counted(item.steps)
