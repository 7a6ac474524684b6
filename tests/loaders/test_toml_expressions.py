"""Expressions in files: arithmetic, and nothing but."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree.loaders.toml.expressions import ExpressionError, evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30 deg", math.radians(30)),
        ("-90 deg", -math.pi / 2),
        ("1 + 30 deg", 1 + math.radians(30)),
        ("(1 + 2) mm", 3e-3),
        ("l/2", 0.2),
        ("2*l + 5 mm", 0.805),
        ("l mm", 0.4e-3),
        ("-l**2", -(0.4**2)),
        ("sqrt(2)/2", math.sqrt(2) / 2),
        ("atan2(1, 0)", math.pi / 2),
        ("max(l, 1, 3)", 3.0),
        ("pi", math.pi),
        ("-inf", -math.inf),
        (" 1e-3 ", 1e-3),
        ("1/4 turn", math.pi / 2),
    ],
)
def test_value(text, value):
    assert evaluate(text, {"l": 0.4}) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a number or an expression"),
        ("1 +", "expected a number or an expression"),
        ("30 degrees", "expected a number or an expression"),
        ("lenght", "no parameter 'lenght'; did you mean 'length'?"),
        ("1/0", "divides by zero"),
        ("length/(1 - 1)", "divides by zero"),
        ("9**9**9", "too large"),
        ("9**9**9**9**9", "too large"),
        ("1e308*10", "too large"),
        ("exp(1e6)", "too large"),
        ("(-1)**0.5", "not a real number"),
        ("sqrt(-1)", "has no value"),
        ("inf - inf", "not a real number"),
        ("sin(1, 2)", "has no value"),
        ("sin()", "has no value"),
        ("sni(1)", "no function 'sni'; did you mean 'sin'?"),
        ("__import__('os').system('true')", "is not arithmetic"),
        ("__import__('os')", "no function '__import__'"),
        ("().__class__", "Attribute is not arithmetic"),
        ("[1 for _ in [1]]", "ListComp is not arithmetic"),
        ("lambda: 1", "Lambda is not arithmetic"),
        ("'a'*9999999999", "Constant is not arithmetic"),
        ("1 if 1 else 2", "IfExp is not arithmetic"),
        ("True", "Constant is not arithmetic"),
        ("1j", "Constant is not arithmetic"),
        ("1 << 99999999", "BinOp is not arithmetic"),
        ("length := 3", "expected a number"),
        ("min(*length)", "Starred is not arithmetic"),
        ("sin(x=1)", "Call is not arithmetic"),
        ("(" * 300 + "1" + ")" * 300, "expected a number"),
        ("1+" * 600 + "1", "at most 1000 characters"),
        ("9" * 999, "too large"),
        ("a\0b", "expected a number"),
    ],
)
def test_error(text, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, {"length": 0.4})
    assert message in str(caught.value)


@given(st.text(alphabet="0123456789.+-*/() ablsincodeg_,'[]{}=:\"\n", max_size=60))
def test_no_text_does_anything_else(text):
    with contextlib.suppress(ExpressionError):
        assert isinstance(evaluate(text, {"a": 1.5, "b": -2.0}), float)
