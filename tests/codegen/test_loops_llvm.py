"""Loops over tables as machine code: what the interpreter means, for every robot and cache."""

import numpy as np
import pytest

from kinetree.algorithms import aba, crba, rnea
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.joints import Fixed, Helical, Prismatic, Revolute, Spherical
from kinetree.model.general.model import AXES
from kinetree.model.general.model import Source as Text
from kinetree.model.general.tables import data_of
from kinetree.samples.trees import random_tree

JOINTS = [
    Revolute("x"), Revolute("z"), Revolute("-y"), Revolute((1.0, 2.0, -3.0)), Prismatic("y"),
    Prismatic((2.0, -1.0, 2.0)), Helical("z", pitch=0.3), Fixed(), Spherical(),
]  # fmt: skip


class Source(Text):
    """A text that counts how often it is recorded."""

    count = 0

    def program(self, kinds, pairs=None):
        self.count += 1
        return super().program(kinds, pairs)


def inverse_dynamics(model, q, qd, qdd):
    return rnea.newton_euler(model, q, qd, qdd).tau


def forward_dynamics(model, q, qd, tau):
    return aba.articulated_bodies(model, q, qd, tau).qdd


def mass_matrix(model, q):
    return crba.composite_bodies(model, q).H


TEXTS = {
    inverse_dynamics: (("q", "qd", "qdd"), ("nv",)),
    forward_dynamics: (("q", "qd", "tau"), ("nv",)),
    mass_matrix: (("q",), ("nv", "nv")),
}
SOURCES = {}


def source(text):
    if text not in SOURCES:
        SOURCES[text] = Source(text, {name: AXES[name] for name in TEXTS[text][0]})
    return SOURCES[text]


def kernel(model, text, of=None, key=None):
    of, data = of or source(text), data_of(model)
    names, axes = TEXTS[text]
    inputs = [_argument(model, name, AXES[name]) for name in names]
    outputs = [_argument(model, "out0", axes)]
    return LoopKernel(
        text.__name__, inputs, outputs, of, data, key=key,
        reference=lambda arrays: text(model, *arrays), validate=lambda arrays: None,
    )  # fmt: skip


def _argument(model, name, axes):
    return Argument(name, tuple(getattr(model, n) if isinstance(n, str) else n for n in axes))


def states(model, text, count, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    rest = [rng.standard_normal((count, model.nv)) for _ in TEXTS[text][0][1:]]
    return [q, *rest]


def error(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.__name__)
def test_machine_code_computes_what_the_interpreter_means(text, seed):
    model = random_tree(9, seed, joints=JOINTS, floating_base=seed == 1)
    arrays = states(model, text, 11, seed)
    code, data = kernel(model, text), data_of(model)
    (meant,) = interpret(source(text).program(data.domains["bodies"].kinds), data, *arrays)
    batch = code.call(*arrays)
    assert error(batch, meant) < 1e-13
    single = np.array([code.call(*(a[k] for a in arrays)) for k in range(11)])
    assert np.array_equal(single, batch)
    short = code.call(*(a.astype(np.float32) for a in arrays))
    assert short.dtype == np.float32
    assert error(short, meant) < 1e-4


@pytest.mark.parametrize("text", [inverse_dynamics, forward_dynamics], ids=lambda t: t.__name__)
def test_rates_and_gradients_are_those_of_the_text(text):
    model = random_tree(6, 4, joints=JOINTS, floating_base=True)
    arrays, directions = states(model, text, 5), states(model, text, 5, 1)
    code, h = kernel(model, text), 1e-30
    for k in range(3):
        step = [
            a + 1j * h * d if n == k else a
            for n, (a, d) in enumerate(zip(arrays, directions, strict=True))
        ]
        expected = np.array([np.imag(text(model, *(a[s] for a in step))) / h for s in range(5)])
        assert error(code.rates((k,)).call(*arrays, directions[k]), expected) < 1e-12
        weights = directions[2]
        gradient = code.gradients((k,)).call(*arrays, weights)
        assert error((gradient * directions[k]).sum(-1), (weights * expected).sum(-1)) < 1e-11
