"""Loops over tables as machine code: what the interpreter means, for every robot and cache."""

import numpy as np
import pytest

from kinetree.algorithms import aba, crba, rnea
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.joints import Fixed, Helical, Prismatic, Revolute, Spherical
from kinetree.model.general.model import AXES, outlined, record
from kinetree.model.general.tables import data_of
from kinetree.samples.trees import random_tree

JOINTS = [
    Revolute("x"), Revolute("z"), Revolute("-y"), Revolute((1.0, 2.0, -3.0)), Prismatic("y"),
    Prismatic((2.0, -1.0, 2.0)), Helical("z", pitch=0.3), Fixed(), Spherical(),
]  # fmt: skip


class Source:
    """A text that is recorded for the kinds that are asked for."""

    def __init__(self, text, arguments, axes):
        self.text, self.arguments, self.axes, self.count = text, arguments, axes, 0
        self.outline = outlined(text, arguments)

    def program(self, kinds, pairs=None):
        self.count += 1
        return record(self.text, self.arguments, kinds["bodies"], "text", self.outline, pairs)


def inverse_dynamics(model, q, qd, qdd):
    return rnea.newton_euler(model, q, qd, qdd).tau


def forward_dynamics(model, q, qd, tau):
    return aba.articulated_bodies(model, q, qd, tau).qdd


def mass_matrix(model, q):
    return crba.composite_bodies(model, q).H


TEXTS = {
    inverse_dynamics: (("q", "qd", "qdd"), ("v",)),
    forward_dynamics: (("q", "qd", "tau"), ("v",)),
    mass_matrix: (("q",), ("v", "v")),
}
SOURCES = {}


def source(text):
    if text not in SOURCES:
        SOURCES[text] = Source(text, *TEXTS[text])
    return SOURCES[text]


def kernel(model, text, of=None, key=None):
    of, data = of or source(text), data_of(model)
    inputs = [_argument(data, name, AXES[name]) for name in of.arguments]
    outputs = [_argument(data, "out0", of.axes)]
    return LoopKernel(
        text.__name__, inputs, outputs, of, data, key=key,
        reference=lambda arrays: text(model, *arrays), validate=lambda arrays: None,
    )  # fmt: skip


def _argument(data, name, axes):
    return Argument(name, tuple(data.lengths.get(n, n) for n in axes))


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
    (meant,) = interpret(
        source(text).program({"bodies": data.domains["bodies"].kinds}), data, *arrays
    )
    batch = code.call(*arrays)
    assert error(batch, meant) < 1e-13
    single = np.array([code.call(*(a[k] for a in arrays)) for k in range(11)])
    assert np.array_equal(single, batch)
    short = code.call(*(a.astype(np.float32) for a in arrays))
    assert short.dtype == np.float32
    assert error(short, meant) < 1e-4
