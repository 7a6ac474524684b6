"""Operations of a program in CUDA C."""

from kinetree.codegen.parts import LEFT, WORK
from kinetree.codegen.render.c import C, offset
from kinetree.codegen.render.cstyle import identifier
from kinetree.codegen.render.cuda_places import PITCH, WARP
from kinetree.codegen.render.minimax import COS, HALF_PI, RANGE, ROUND, SIN, TWO_OVER_PI
from kinetree.expr.node import LEAVES


def angles_of(program, tiles):
    """Places ``(argument, offset)`` of inputs in tiles that only enter sines and cosines."""
    nodes, arguments = program.graph.nodes, {a.name: a for a in program.inputs}
    order = program.graph.reachable(program.wanted)
    turned, other = set(), set(program.roots)
    for i in order:
        op, *operands = nodes[i]
        if op not in LEAVES:
            (turned if op in ("sin", "cos") else other).update(operands)
    found = [nodes[i] for i in turned - other if nodes[i][0] == "input"]
    return {(name, offset(arguments[name], index)) for _, name, index in found if name in tiles}


class Cuda(C):
    """CUDA C for one program.

    Attributes:
        inputs, outputs: names of the arguments in the text, by their names.
        in_place: inputs, by their text, that become states of loops where they are.
        turned: numbers of the angles whose sines and cosines a loop computes, by their text.
    """

    joins_sines = True
    states_change_early = True
    longest = 0  # the order of our values suits the compiler better than one that it finds itself
    sums_absorb = True  # fused anyway; the text is a fifth shorter, and so is the compiler's time

    def __init__(self, program, dtype, angles, kept, left, *, loops_over_angles=False):
        super().__init__(dtype)
        if dtype == "float32":
            self.calls = {**self.calls, "/": "quotient_any({}, {})"}
        self.angles, self.kept, self.left = angles, kept, left
        self.inputs, self.outputs = _names("in", program.inputs), _names("out", program.outputs)
        self.shapes = {a.name: a for a in program.inputs}
        self.checked = _bounded_nodes(program)
        self.loops_over_angles = loops_over_angles
        self.turned, self.in_place = dict[str, int](), set[str]()

    def call(self, op, texts, operands):
        """CUDA text of a math call; quotients skip special cases if the divisor was checked."""
        if op == "/" and operands[1] in self.checked:
            return f"quotient({', '.join(texts)})"
        return super().call(op, texts, operands)

    def input(self, argument, index):
        """CUDA text of an input number, in the sample's row of a tile or in the workspace."""
        if argument.name == WORK:
            return f"work[{WARP * index[0]}]"
        return f"{self.inputs[argument.name]}[{offset(argument, index)}]"

    def sine_and_cosine(self, names, text, argument):
        """CUDA lines for sine and cosine; without a range branch if the angle is checked."""
        op, *place = argument
        near = op == "input" and (place[0], offset(self.shapes[place[0]], place[1])) in self.angles
        if self.loops_over_angles and (op == "carry" or (op == "input" and place[0] != WORK)):
            at = 2 * WARP * self.turned.setdefault(text, len(self.turned))
            pairs = zip(names, (at, at + WARP), strict=True)
            return [f"const real {name} = turned[{k}];" for name, k in pairs if name]
        sine, cosine = (
            name or f"unused_{other}" for name, other in zip(names, names[::-1], strict=True)
        )
        function = "sincos_near" if near else "sincos_any"
        return [f"real {sine}, {cosine};", f"{function}({text}, &{sine}, &{cosine});"]

    def loop(self, counter, times, carries, initial, body, following):
        """CUDA lines of a loop; sines and cosines of angles in its state are computed first."""
        turns = self.turns([c for c in carries if c in self.turned])
        lines = super().loop(counter, times, carries, initial, [*turns, *body], following)
        states = zip(carries, initial, strict=True)
        return [
            *(f"#define {c} {x}" if x in self.in_place else f"real {c} = {x};" for c, x in states),
            *lines[len(carries) :],
        ]

    def turns(self, angles) -> list:
        """CUDA lines that compute sines and cosines of angles in a loop into shared memory."""
        numbers = {self.turned[x]: x for x in angles}
        lines = [f"turned[{2 * WARP * k}] = {x};" for k, x in numbers.items()]
        begins, ends = (sorted(k for k in numbers if k + d not in numbers) for d in (-1, 1))
        for first, last in zip(begins, ends, strict=True):
            lines += [
                "#pragma unroll 4",
                f"for (int k = {2 * WARP * first}; k <= {2 * WARP * last}; k += {2 * WARP})",
                f"    sincos_any(turned[k], &turned[k], &turned[k + {WARP}]);",
            ]
        return lines

    def output(self, argument, index, text):
        """CUDA lines that write a result: to its tile, the workspace, or once to sparse ones."""
        if argument.name == LEFT:
            return [f"left[{WARP * self.left[index[0]]}] = {text};"]
        if argument.name in self.kept.tables:
            place = self.kept.first.get((argument.name, offset(argument, index)))
            return [f"kept[{PITCH * place}] = {text};"] if place else []
        return [f"{self.outputs[argument.name]}[{offset(argument, index)}] = {text};"]


def _bounded_nodes(program):
    """Nodes that a run-time check requires to exceed something, so that they are not 0."""
    nodes = program.graph.nodes
    return {nodes[node][2] for node, *_ in program.checks if nodes[node][0] == "<"}


def _names(side, arguments):
    """Unique identifier of every argument, by its name."""
    names = {}
    for a in arguments:
        name = identifier(f"{side}_{a.name}")
        while name in names.values():
            name += "_"
        names[a.name] = name
    return names


# --- Sine and cosine in CUDA C: without branches where an angle is known to be of moderate size --
# A branch for angles out of range, in the middle of a long straight line, makes the compiler keep
# everything else in memory. So kernels look at all joint angles of a sample at once, before the
# arithmetic begins, and bring those beyond ``RANGE`` back to [-π, π]; ``sincos_near`` then needs no
# branch. Angles that are computed on the way go through ``sincos_any``, which has one.
#
# Errors are those of ``llvm_math`` (1.53 ulp in float32, 1.46 in float64) within ``RANGE``. Beyond
# it the angle itself is rounded, to 2.4e-7 rad in float32 and 4.4e-16 rad in float64, which is a
# thousandth of the distance between numbers of that size. ``sincos_any`` takes CUDA's own
# functions there. The arctangent, the exponential, the logarithm and the hyperbolic tangent are
# CUDA's.


def elementary(dtype) -> str:
    """CUDA definitions of ``sincos_near``, ``sincos_any`` and ``reduced`` for a precision."""
    number = C(dtype).constant
    half_pi, sine, cosine = HALF_PI[dtype], SIN[dtype], COS[dtype]
    f = "f" if dtype == "float32" else ""
    steps = "\n".join(f"    r = fma{f}(n, {number(-part)}, r);" for part in half_pi)
    bits = "__float_as_int(turned)" if f else "__double2loint(turned)"
    turned = ["quadrant & 2 ? -a : a", "(quadrant + 1) & 2 ? -b : b"]
    if f:  # without predicates
        signs = ("a", "quadrant"), ("b", "(quadrant + 1)")
        turned = [
            f"__int_as_float(__float_as_int({x}) ^ ({q} << 30 & 0x80000000))" for x, q in signs
        ]
    return f"""\
DEVICE void sincos_near(real x, real *sine, real *cosine)
{{
    const real turned = fma{f}(x, {number(TWO_OVER_PI)}, {number(ROUND[dtype])});
    const real n = turned - {number(ROUND[dtype])};
    const int quadrant = {bits};
    real r = x;
{steps}
    const real z = r * r;
    const real s = copysign{f}(fma{f}(r * z, {_horner(sine, f, number)}, r), r);
    const real half = fma{f}(z, {_horner(cosine, f, number)}, {number(-0.5)});
    const real c = fma{f}(z, half, {number(1.0)});
    const real a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
    *sine = {turned[0]};
    *cosine = {turned[1]};
}}

typedef struct {{ real sine, cosine; }} turn;

static __device__ __noinline__ turn sincos_far(real x)
{{
    turn t;
    t.sine = sin{f}(x);
    t.cosine = cos{f}(x);
    return t;
}}

DEVICE void sincos_any(real x, real *sine, real *cosine)
{{
    sincos_near(x, sine, cosine);
    if (!(fabs{f}(x) <= {number(RANGE[dtype])})) {{
        const turn t = sincos_far(x);
        *sine = t.sine;
        *cosine = t.cosine;
    }}
}}

/* The same angle between -pi and pi. */
static __device__ __noinline__ real reduced(real x)
{{
    const turn t = sincos_far(x);
    return atan2{f}(t.sine, t.cosine);
}}{_QUOTIENT if f else ""}"""


_QUOTIENT = """

/* a / b by an estimate and one step from there. */
#ifdef __CUDA_ARCH__
#define QUOTIENT(rcp) \\
    float r; \\
    asm(rcp " %0, %1;" : "=f"(r) : "f"(b)); \\
    const float estimate = a * r, q = fmaf(fmaf(-b, estimate, a), r, estimate);
#else
#define QUOTIENT(rcp) const float estimate = a / b, q = estimate;
#endif

/* a / b; NaN where the divisor is zero, less than 2**-126 in size, or infinite. */
DEVICE real quotient(real a, real b) { QUOTIENT("rcp.approx.ftz.f32"); return q; }

/* a / b for any divisor; the estimate is right for zero and infinity. */
DEVICE real quotient_any(real a, real b)
{
    QUOTIENT("rcp.approx.f32");
    return q == q ? q : estimate;
}"""


def _horner(coefficients, f, number):
    """Text of a polynomial by Horner's scheme."""
    text = number(coefficients[0])
    for c in coefficients[1:]:
        text = f"fma{f}({text}, z, {number(c)})"
    return text
