"""PyTorch is tested where its wheel is small, and what is left out elsewhere is reported."""

import re
from pathlib import Path

import pytest
from support import pytorch_here
from support.pytorch_here import header, is_left_out, is_required, needs_pytorch

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("machine", "python", "required"),
    [("aarch64", "3.10", True), ("arm64", "3.13", True), ("x86_64", "3.12", False),
     ("aarch64", "3.14", False)],
)  # fmt: skip
def test_where_it_is_required(machine, python, required):
    assert is_required(platform_machine=machine, python_version=python) is required


def test_what_uses_it_is_recognized_by_its_text():
    files = list(TESTS.rglob("test_*.py"))
    texts = {f: f.read_text("utf-8") for f in files}
    mentions = re.compile(r"^\s*(import torch\b|from torch\b)", re.M)
    found = {f for f in files if needs_pytorch(texts[f])}
    assert found == {f for f in files if mentions.search(texts[f])}
    assert TESTS / "arrays" / "test_torch_kind.py" in found
    assert not needs_pytorch("x = 'torch.Tensor'  # or torch.zeros")
    assert needs_pytorch("x = torch.zeros(2)")


def test_what_is_left_out_is_reported(monkeypatch):
    monkeypatch.setattr(pytorch_here, "LEFT_OUT", True)
    report = header()
    assert "tests/arrays/test_torch_kind.py" in report
    assert "docs/pytorch.md" in report
    assert report.endswith("To run them: make torch")
    assert is_left_out("import numpy\nimport torch\n")
    assert not is_left_out("import jax\n")


def test_where_it_is_required_nothing_is_left_out(monkeypatch):
    monkeypatch.setattr(pytorch_here, "LEFT_OUT", False)
    assert header() is None
    assert not is_left_out("import torch\n")
