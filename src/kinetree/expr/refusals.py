"""Errors for code that cannot be traced, with advice on what to write instead.

A trace follows every sample at once: nothing may depend on the value of one. Python needs the
truth of a value in ``if``, ``while``, ``min``, ``max`` and ``in``, and a machine number in
``math.sin``, ``int`` or an assignment into a float array; each is rejected here with advice.
"""

from contextlib import contextmanager

from kinetree.errors import TraceError

AVAILABLE = (
    "+ - * / ** abs sqrt sin cos tan arcsin arccos arctan arctan2 hypot exp log tanh floor and "
    "kinetree.select"
)


def _truth(self):
    """Raise TraceError for a Python decision about a traced value."""
    raise TraceError(
        "a decision depends on a traced value, which is known only when the compiled code runs. "
        "Instead of if, and, or, not, np.where(c, a, b), max(a, b), np.maximum, np.clip, np.sign "
        "or `in` write kinetree.select(c, a, b); combine conditions with & | ~, not with "
        "and, or, not, np.logical_and, nor chained as in a < x < b"
    )


def _machine_number(self, *args):
    """Raise TraceError for conversion of a traced value to a plain number."""
    raise TraceError(
        "a traced value was turned into a float or an integer, for instance by math.sin, float(), "
        "np.linalg or assignment into a float array: use np.sin, kinetree's own functions, and "
        "np.array([...]) or np.zeros(..., dtype=object) for new arrays"
    )


def _refuse(name):
    """Method that raises the error of a function that traced values lack."""

    def method(self, *args):
        raise TraceError(f"{name} of a traced value is not available; there are {AVAILABLE}")

    return method


class Untraceable:
    """Refusals that numbers and conditions share."""

    __slots__ = ()

    __bool__ = _truth
    __float__ = __int__ = __index__ = __complex__ = _machine_number
    __round__ = __ceil__ = __trunc__ = _machine_number

    def __copy__(self):
        return self  # a copy of a graph would be a different trace

    def __deepcopy__(self, memo):
        return self


class NotTraceable(Untraceable):
    """Refusals of a traced number: what NumPy and Python offer and the graph does not."""

    __slots__ = ()

    __mod__ = __rmod__ = _refuse("the remainder %")
    __floordiv__ = __rfloordiv__ = _refuse("the whole quotient //")
    __divmod__ = __rdivmod__ = _refuse("divmod")
    __rpow__ = _refuse("a power with a traced exponent")
    exp2, expm1, sinh, cosh = (_refuse(f) for f in ("exp2", "expm1", "sinh", "cosh"))
    log2, log10, log1p = (_refuse(f) for f in ("log2", "log10", "log1p"))
    arcsinh, arccosh, arctanh = _refuse("arcsinh"), _refuse("arccosh"), _refuse("arctanh")
    rint, cbrt, fmod = _refuse("rounding"), _refuse("cbrt"), _refuse("fmod")

    def select(self, a, b):
        """Raise TraceError: a number is no condition."""
        raise TraceError(
            "the first argument of select is a traced number, not a condition: compare it, as in "
            "kinetree.select(x < 0, a, b)"
        )

    def _not_a_condition(self, *args):
        """Raise TraceError: ``& | ^ ~`` are for conditions."""
        raise TraceError(
            "& | ^ ~ combine conditions, such as (a < x) & (x < b): comparisons "
            "need brackets, and numbers must be compared first"
        )

    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _not_a_condition


class NotANumber(Untraceable):
    """Refusals of a traced condition."""

    __slots__ = ()

    def _arithmetic(self, *args):
        """Raise TraceError for a condition that was used as a number."""
        raise TraceError(
            "a traced condition was used as a number: write kinetree.select(condition, 1, 0), or "
            "kinetree.select(condition, a, b) with the two values in question"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _arithmetic
    __truediv__ = __rtruediv__ = __neg__ = __pos__ = __abs__ = __pow__ = _arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = _arithmetic
    sin = cos = sqrt = exp = log = tanh = arctan2 = atan2 = _arithmetic


def mixed_traces():
    """TraceError for values that belong to different graphs."""
    return TraceError(
        "values of two different traces were combined: a traced value was kept, for instance in a "
        "global variable, and used again after its trace had ended"
    )


# A float among traced values has no method ``sin``, which is what NumPy calls on objects.
_SAID_BY_NUMPY = (
    "ufunc",
    "linalg",
    "'float' object has no attribute",
    "'int' object has no attrib",
)


@contextmanager
def explain_trace_errors():
    """Context that turns NumPy's errors about traced objects into ``TraceError``."""
    try:
        yield
    except TraceError:
        raise
    except (TypeError, AttributeError) as error:
        if not any(sign in str(error) for sign in _SAID_BY_NUMPY):
            raise
        raise TraceError(
            f"NumPy rejected an array that holds traced values: {error}. Functions that work on "
            f"such arrays are {AVAILABLE}, sums, products, @ and einsum; where an array mixes "
            f"traced values and plain numbers, apply np.sin and the like to the traced ones "
            f"alone. np.linalg does not work: kinetree's own functions solve and invert"
        ) from error
