"""Keys: the same for the same code, different for anything else, and never by accident."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kinetree.codegen import keys
from kinetree.codegen import machine_code as llvm
from kinetree.codegen.keys import program_key, request_key, source_digest
from kinetree.codegen.program import Argument
from kinetree.errors import UnknownNameError


@pytest.fixture(autouse=True)
def settled_source(monkeypatch):
    """Whatever is being edited while the tests run."""
    monkeypatch.setattr(keys, "source_digest", lambda: "source")


def kernel(key=("model", "quantity"), name="f", shape=(3,)):
    return SimpleNamespace(
        key=key, name=name, inputs=[Argument("x", shape)], outputs=[Argument("out0", (3,))]
    )


def test_everything_requested_is_in_the_request_key(monkeypatch):
    requests = [
        request_key(kernel(), "float64", 1),
        request_key(kernel(), "float64", 4),
        request_key(kernel(), "float32", 4),
        request_key(kernel(key=("model", "other")), "float64", 1),
        request_key(kernel(key=("model", 1)), "float64", 1),
        request_key(kernel(key=("model", 1.0)), "float64", 1),
        request_key(kernel(key=("model", "1")), "float64", 1),
        request_key(kernel(key=("model", ("quantity", ("a", None)))), "float64", 1),
        request_key(kernel(name="g"), "float64", 1),
        request_key(kernel(shape=(4,)), "float64", 1),
    ]
    monkeypatch.setattr(llvm, "host", lambda: "another processor")
    requests.append(request_key(kernel(), "float64", 1))
    monkeypatch.setattr(keys, "source_digest", lambda: "another source")
    requests.append(request_key(kernel(), "float64", 1))
    assert len(set(requests)) == len(requests)
    assert request_key(kernel(), "float64", 1) == request_key(kernel(), "float64", 1)


@pytest.mark.parametrize(
    "key",
    [None, (object(),), (print,), (np.zeros(2000),), ("a", (1, [2]))],
    ids=["none", "object", "function", "array", "list"],
)
def test_what_has_no_lasting_name_has_no_request(key):
    assert request_key(kernel(key=key), "float64", 1) is None


def test_a_program_is_identified_by_text_processor_and_recipe(monkeypatch):
    found = {program_key("1" * 64), program_key("2" * 64)}
    monkeypatch.setattr(keys, "recipe", lambda: "another way to compile")
    found.add(program_key("1" * 64))
    monkeypatch.setattr(llvm, "host", lambda: "another processor")
    found.add(program_key("1" * 64))
    assert len(found) == 4


def test_compiler_and_processor_are_named_completely():
    import llvmlite
    import llvmlite.binding as binding

    for part in (
        llvmlite.__version__, binding.get_host_cpu_name(), binding.get_default_triple(),
        binding.get_host_cpu_features().flatten(),
    ):  # fmt: skip
        assert part in llvm.host()


def test_levels_of_optimisation_have_keys_of_their_own(monkeypatch):
    monkeypatch.delenv("KINETREE_OPTIMIZATION", raising=False)
    default = program_key("1" * 64), request_key(kernel(), "float64", 1)
    monkeypatch.setenv("KINETREE_OPTIMIZATION", "1")
    assert (program_key("1" * 64), request_key(kernel(), "float64", 1)) == default
    monkeypatch.setenv("KINETREE_OPTIMIZATION", "0")
    found = program_key("1" * 64), request_key(kernel(), "float64", 1)
    assert all(a == f"{b}, level 0" for a, b in zip(found, default, strict=True))
    monkeypatch.setenv("KINETREE_OPTIMIZATION", "3")
    with pytest.raises(UnknownNameError, match="KINETREE_OPTIMIZATION must be 0 or 1, got '3'"):
        program_key("1" * 64)


class TestSource:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        (tmp_path / "sub").mkdir()
        for name in ("a.py", "sub/b.py"):
            (tmp_path / name).write_text("x = 1")
            os.utime(tmp_path / name, (1e9, 1e9))
        monkeypatch.setattr(keys, "__file__", str(tmp_path / "sub" / "keys.py"))
        return tmp_path

    def digest(self):
        source_digest.cache_clear()
        found = source_digest()
        source_digest.cache_clear()
        return found

    def edit(self, path, text):
        path.write_text(text)
        os.utime(path, (1e9, 1e9))

    def test_content_counts(self, folder):
        found = [self.digest()]
        self.edit(folder / "sub" / "b.py", "x = 2")
        found.append(self.digest())
        self.edit(folder / "sub" / "b.py", "x = 1")
        assert self.digest() == found[0]
        self.edit(folder / "sub" / "c.py", "")
        found.append(self.digest())
        self.edit(folder / "notes.txt", "")
        assert self.digest() == found[-1]
        assert len(set(found)) == 3

    def test_a_file_that_changed_since_it_was_imported_makes_it_unknown(self, folder):
        os.utime(folder / "a.py", (time.time() + 5, time.time() + 5))
        assert self.digest() is None

    def test_without_source_the_version_has_to_do(self, folder, monkeypatch):
        monkeypatch.setattr(keys, "__file__", str(folder / "archive.zip" / "x" / "keys.py"))
        assert self.digest()


def test_no_request_while_the_source_is_unknown(monkeypatch):
    monkeypatch.setattr(keys, "source_digest", lambda: None)
    assert request_key(kernel(), "float64", 1) is None


def test_another_process_finds_the_same_keys():
    code = (
        "from kinetree.codegen import keys\n"
        "from kinetree import quantities, samples\n"
        "from kinetree.model.define import kernel_of\n"
        "keys.source_digest = lambda: 'source'\n"
        "kernel = kernel_of(samples.pendulum(), 'jacobian', name='bob')\n"
        "print(repr(keys.request_key(kernel, 'float64', 1)), keys.program_key('1'))"
    )
    source = str(Path(keys.__file__).parents[2])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": source, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    assert not outputs.pop().startswith("None")
