"""The compiled functions of an environment: texts of its ``ControlStep`` with their inputs."""

from dataclasses import replace
from typing import Any

import numpy as np

from kinetree.codegen.inline import evaluate
from kinetree.codegen.program import Argument, Traced, calls_of, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.learning.random import Draws
from kinetree.learning.step import ControlStep, Moved
from kinetree.model.kernels import kernel_for
from kinetree.simulation.rollouts.transition import BY_ROUTINES

OUTPUTS = (
    "observation",
    "reward",
    "terminated",
    "truncated",
    "final_observation",
    "failed",
    "error",
)
"""Of a control step, beside the state."""


def compile_program(step: ControlStep, what: str) -> Kernel:
    """Compiled function of an environment: "reset", "step", "update" or "finish".

    Args:
        step: the texts.
        what: ``"reset"`` begins an episode; ``"step"`` takes a control step; ``"update"`` and
            ``"finish"`` are its parts before and after the steps of the mechanics.
    """
    states, arguments = dict(step.shapes), dict(step.arguments)
    more: dict[str, tuple] = {}
    if what == "reset":
        states = {"tick": ()}
    elif what == "finish":
        n, model = step.actions, step.model
        more = {
            "actions": (step.history + 1, n),
            "previous": (n,),
            "q before": (model.nq,),
            "qd before": (model.nv,),
            "wanted": (n,),
            "error": (),
            "failed": (),
        }
    else:
        more = {"wanted": (step.actions,)}
    inputs = [Argument("seed", (3,)), Argument("world", ())]
    inputs += [Argument(*item) for group in (states, arguments, more) for item in group.items()]

    def text(*symbols):
        graph = symbols[1][()].graph
        seed, world, *rest = (a if a.shape else a[()] for a in symbols)
        groups, at = [], 0
        for names in (states, arguments, more):
            groups.append(dict(zip(names, rest[at : at + len(names)], strict=True)))
            at += len(names)
        draws = Draws(seed, world, groups[0]["tick"], {})
        found = _TEXTS[what](step, *groups, draws)
        graph.checks.clear()  # worlds that fail begin anew: see ``ControlStep``
        return tuple(np.asarray(x) for x in found)

    traced = Traced(lambda: replace(trace(text, inputs, what), total=True))
    kernel = kernel_for(
        step.model,
        f"Environment.{what}",
        inputs,
        traced.program.outputs,
        traced,
        reference=lambda arrays: evaluate(kernel.program, arrays),
        validate=lambda arrays: None,
    )
    if calls_of(traced.program):
        kernel.on_gpu = BY_ROUTINES
    return kernel


def _reset(step, tick, arguments, more, draws) -> list[Any]:
    """Initial state of an episode and its first observation, as a list."""
    state = step.begin(arguments, draws)
    return [*state.values(), step.observe(state, arguments, draws)]


def _step(step, state, arguments, more, draws) -> list[Any]:
    """State after a control step, and the ``OUTPUTS``, as a list."""
    state, info = step(state, arguments, draws, more["wanted"])
    return [*state.values(), *(info[name] for name in OUTPUTS)]


def _update(step, state, arguments, more, draws) -> list[Any]:
    """State before the steps of the mechanics, and the delayed actions, as a list."""
    after, actions = step.update(state, arguments, draws, more["wanted"])
    return [*(after[name] for name in state), np.array(actions)]


def _finish(step, state, arguments, more, draws) -> list[Any]:
    """State and outputs of a control step, from the state after its mechanics."""
    before = {"q": more["q before"], "qd": more["qd before"]}
    tau = step.driving_forces({**state, **before}, arguments, more["wanted"])
    # ``update`` has drawn its numbers in another call, and these are different draws.
    if "update" in step.kernels:
        step.random_numbers("update", draws)
    moved = Moved(more["previous"], tau, more["error"], more["failed"] < 0.5)
    after, info = step.finish(state, arguments, draws, list(more["actions"]), moved)
    return [*(after[name] for name in state), *(info[name] for name in OUTPUTS)]


_TEXTS = {"reset": _reset, "step": _step, "update": _update, "finish": _finish}
