"""Where in the user's function tracing failed, and what to write there instead."""

import linecache
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from kinetree.errors import KinetreeError, TraceError
from kinetree.expr.refusals import explained

__all__ = ["located"]

_OURS = (str(Path(__file__).parents[1]), str(Path(np.__file__).parent), "<__array_function__")

# Text of the line that failed -> what to write there.
_ADVICE = {
    "np.linalg": "np.linalg decides by values (pivots, ranks): write the formula out, let "
    "kinetree.forward_dynamics or kinetree.inverse_mass_matrix solve, or do it outside the kernel",
    "range(": "a loop whose number of runs is an array argument is kinetree.repeat(body, state, "
    "times); pass the number by keyword as a whole number to compile it in",
    "while ": "a loop until something holds is kinetree.repeat(body, state, times) with enough "
    "runs and kinetree.select(condition, new, old) in its body",
    "math.": "write np.sin for math.sin, and so on",
}


@contextmanager
def located(user, call):
    """Turn what goes wrong while tracing into a ``TraceError`` that names the line.

    An error that the function raises on plain numbers too is the function's own and passes.
    """
    try:
        with explained():
            yield
    except TraceError as error:
        raise _at_line(user, error, str(error)) from error
    except KinetreeError:
        raise
    except Exception as error:
        _try_on_numbers(user, call)
        message = f"{type(error).__name__}: {error}. The function works on plain numbers, but not "
        raise _at_line(user, error, message + "on traced ones") from error


def _try_on_numbers(user, call):
    """Run the function on the first sample; what it raises there is not about tracing."""
    sample = []
    for name, array in call.arrays.items():
        shape = call.shapes[name]
        if array.shape[array.ndim - len(shape) :] != shape or not array.size:
            return
        sample.append(array.reshape(-1, *shape)[0][()])
    call.apply(user.function, sample)


def _at_line(user, error, message):
    frame = _where(user, error)
    if frame is None:
        return TraceError(f"kernel {user.__name__!r} cannot be compiled: {message}")
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    advice = next((text for part, text in _ADVICE.items() if part in line), None)
    return TraceError(
        f"kernel {user.__name__!r} cannot be compiled\n"
        f"  {frame.filename}:{frame.lineno}, in {frame.name}\n"
        f"    {line}\n"
        f"{message}" + (f"\n{advice}" if advice else "")
    )


def _where(user, error):
    """The innermost frame of the user's own code, else that of the kernel."""
    origin = error.__cause__ or error  # a refusal of NumPy's, which has been explained
    frames = traceback.extract_tb(origin.__traceback__)
    own = [f for f in frames if not f.filename.startswith(_OURS)]
    if own:
        return own[-1]
    code = getattr(user.function, "__code__", None)
    return next((f for f in frames if code and f.filename == code.co_filename), None)
