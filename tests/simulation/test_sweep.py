"""``kt.sweep`` on threads: what is run, in which order, with which seeds; what fails."""

import threading

import numpy as np
import pytest

import kinetree as kt
from kinetree import Sweep, sweep
from kinetree.errors import SweepError, SweepWarning
from kinetree.simulation.sweep.plan import digest

PENDULUM = kt.samples.pendulum()
DOUBLE = kt.samples.double_pendulum()


def product(model, a, b):
    return {"product": a * b, "pair": np.array([a, b])}


def test_a_grid_is_every_combination_with_the_last_name_fastest():
    found = sweep(PENDULUM, product, {"a": [1.0, 2.0, 3.0], "b": [10.0, 20.0]}, chunk=4)
    assert found.shape == (3, 2)
    assert found["product"].tolist() == [10.0, 20.0, 20.0, 40.0, 30.0, 60.0]
    assert found["product"].reshape(found.shape)[2, 1] == 60.0
    assert found["pair"].shape == (6, 2)
    assert found.names == ("product", "pair")
    assert found.values["b"].tolist() == [10.0, 20.0] * 3
    assert [found.run(k)["product"] for k in (0, 4, 5)] == [10.0, 30.0, 60.0]
    assert len(found) == 6
    assert found.ok.all()


@pytest.mark.parametrize(
    "samples",
    [
        {"a": [1.0, 2.0], "b": [3.0, 4.0]},
        [{"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 4.0}],
    ],
)
def test_samples_are_pairs(samples):
    found = sweep(PENDULUM, product, samples=samples)
    assert found["product"].tolist() == [3.0, 8.0]


def test_drawn_samples_depend_on_seed_and_number_alone():
    def draw(rng):
        return {"a": rng.normal(), "b": rng.normal()}

    few = sweep(PENDULUM, product, samples=draw, count=5, seed=3)
    many = sweep(PENDULUM, product, samples=draw, count=9, seed=3, chunk=2)
    other = sweep(PENDULUM, product, samples=draw, count=5, seed=4)
    assert np.array_equal(few["pair"], many["pair"][:5])
    assert not np.any(few["pair"] == other["pair"])


def noisy(model, k, rng):
    return rng.normal(size=3)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_results_do_not_depend_on_threads_or_chunks(threads, chunk):
    found = sweep(PENDULUM, noisy, {"k": range(10)}, seed=7, threads=threads, chunk=chunk)
    expected = sweep(PENDULUM, noisy, {"k": range(10)}, seed=7, threads=1)
    assert np.array_equal(found["result"], expected["result"])
    assert np.array_equal(found.seeds, expected.seeds)
    assert len(set(found.seeds.tolist())) == 10


def test_a_run_can_be_repeated_from_its_seed():
    found = sweep(PENDULUM, noisy, {"k": [0, 1, 2]})
    again = noisy(PENDULUM, 1, np.random.default_rng(int(found.seeds[1])))
    assert np.array_equal(again, found["result"][1])


def test_runs_are_spread_over_threads():
    meeting = threading.Barrier(2, timeout=600)

    def wait_for_another(model, k):
        if k:  # the first chunk is done alone
            meeting.wait()
        return threading.get_ident()

    found = sweep(PENDULUM, wait_for_another, {"k": range(3)}, chunk=1, threads=2)
    assert len(set(found["result"][1:].tolist())) == 2


def test_a_failing_run_is_recorded_and_the_others_go_on():
    def careful(model, k):
        if k == 2:
            raise ValueError("two is too many")
        return {"k": k, "vector": np.full(2, float(k))}

    with pytest.warns(SweepWarning, match=r"1 of 5 runs failed; run 2: ValueError: two is too"):
        found = sweep(PENDULUM, careful, {"k": range(5)}, chunk=2)
    assert found.failed == {2: "ValueError: two is too many"}
    assert found.ok.tolist() == [True, True, False, True, True]
    assert np.isnan(found["k"][2])
    assert np.isnan(found["vector"][2]).all()
    assert found["k"][found.ok].tolist() == [0, 1, 3, 4]


def test_a_batch_that_one_run_spoils_is_done_run_by_run():
    def roots(model, x):
        if np.any(x < 0):
            raise ValueError("no root")
        return np.sqrt(x)

    with pytest.warns(SweepWarning, match="1 of 4"):
        found = sweep(PENDULUM, roots, {"x": [1.0, 4.0, -1.0, 9.0]}, batched=True, chunk=4)
    assert found["result"][found.ok].tolist() == [1.0, 2.0, 3.0]
    assert found.failed == {2: "ValueError: no root"}


def test_parameters_of_the_model_change_the_model_of_the_run():
    def weight(model, **nothing):
        return kt.gravity_force(model, [np.pi / 2])

    body = PENDULUM.body_names[1]
    mass = PENDULUM.inertia[1].mass
    found = sweep(PENDULUM, weight, {f"mass:{body}": [mass, 2 * mass], "gravity": [[0, 0, -1.0]]})
    one, two = found["result"][:, 0]
    assert two == pytest.approx(2 * one, rel=1e-14)


def test_results_of_different_lengths_are_objects():
    found = sweep(PENDULUM, lambda model, n: np.zeros(n), {"n": [1, 2, 3]})
    assert [len(row) for row in found["result"]] == [1, 2, 3]


def test_tables_have_a_row_for_each_run():
    found = sweep(PENDULUM, product, {"a": [1.0, 2.0], "b": [3.0, 4.0]})
    table = found.to_pandas()
    assert list(table.columns) == ["a", "b", "product", "pair[0]", "pair[1]", "seed", "failure"]
    assert table["product"].tolist() == [3.0, 4.0, 6.0, 8.0]
    assert table.index.name == "run"
    data = found.to_xarray()
    assert data["product"].sel(a=2.0, b=3.0) == 6.0
    assert data["pair"].dims == ("a", "b", "pair_0")


def test_vectors_on_an_axis_stand_beside_their_numbers():
    starts = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    found = sweep(DOUBLE, lambda model, q, k: q.sum() + k, {"q": starts, "k": [0.0, 10.0]})
    data = found.to_xarray()
    assert data["result"].sel(q=1, k=10.0) == 15.0
    assert np.array_equal(data["q_values"], starts)
    samples = sweep(DOUBLE, lambda model, q: q.sum(), samples={"q": starts}).to_xarray()
    assert samples["q"].dims == ("run", "q_0")


def test_progress_is_reported_to_a_function():
    reported = []
    sweep(
        PENDULUM, noisy, {"k": range(5)}, chunk=2, progress=lambda *p: reported.append(p), threads=1
    )
    assert reported == [(0, 5), (2, 5), (4, 5), (5, 5)]


def test_a_bar_goes_to_standard_error(capsys):
    sweep(PENDULUM, noisy, {"k": range(5)}, progress=True)
    sweep(PENDULUM, noisy, {"k": range(5)})
    assert capsys.readouterr().out == ""


def test_what_was_not_returned_is_named():
    found = sweep(PENDULUM, product, {"a": [1.0], "b": [2.0]})
    with pytest.raises(kt.UnknownNameError, match="no 'produkt'; did you mean 'product'"):
        found["produkt"]
    with pytest.raises(kt.UnknownNameError, match="no run 1; they are 0 to 0"):
        found.run(1)
    assert repr(found) == "Sweep(1 × 1 runs of a, b -> product, pair)"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((product,), {}, "either a grid"),
        ((product, {"a": [1]}), {"samples": {"a": [1]}}, "either a grid"),
        ((product, {"a": [1]}), {}, r"product\(model, a, b\) cannot be called .* 'a': missing"),
        ((product, {"a": [1], "c": [1]}), {}, "unexpected keyword argument 'c'|missing"),
        ((product, {"a": [], "b": [1]}), {}, "no values of 'a'"),
        ((product, {"a": 1, "b": [1]}), {}, "values of 'a' must be a list or an array, got 1"),
        ((product, [1, 2]), {}, "a grid is a dictionary"),
        ((product,), {"samples": {"a": [1], "b": [1, 2]}}, "1 of 'a', 2 of 'b'"),
        ((product,), {"samples": [{"a": 1}, {"b": 1}]}, r"sample 1 must .* \['a'\]; got \['b'\]"),
        ((product,), {"samples": lambda rng: {"a": 1}}, "how many samples"),
        ((product, {"a": [1], "b": [1]}), {"count": 3}, "a grid has its own count"),
        ((product,), {"samples": {"a": [1], "b": [1]}, "count": 3}, "leave it out"),
        ((product, {"a": [1], "b": [1]}), {"seed": -1}, "seed must be an integer"),
        ((product, {"a": [1], "b": [1]}), {"chunk": 0}, "chunk must be an integer"),
        ((product, {"a": [1], "b": [1]}), {"threads": 0}, "threads must be an integer"),
        (("no function", {"a": [1]}), {}, "must be a function of the model"),
        ((noisy, {"k": [1]}), {"batched": True}, "can take their seeds"),
        ((product, {"a": [1], "b": [1], "gravity": [[0, 0, 0]]}), {"batched": True}, "one model"),
    ],
)
def test_misuse_is_named_before_anything_runs(arguments, options, message):
    with pytest.raises(SweepError, match=message):
        sweep(PENDULUM, *arguments, **options)


def test_a_batch_with_too_few_rows_is_a_mistake_of_the_function():
    with pytest.raises(SweepError, match=r"given 3 runs at once .* 'result' has shape \(2,\)"):
        sweep(PENDULUM, lambda model, x: x[:2], {"x": [1, 2, 3]}, batched=True, chunk=3)


def test_what_is_neither_number_nor_text_is_a_failed_run():
    with pytest.warns(SweepWarning, match="'result' is object, not numbers or text"):
        sweep(PENDULUM, lambda model, x: object(), {"x": [1]})


def test_functions_that_differ_have_different_digests():
    def outer(gain):
        return lambda model, x: gain * x

    def calls_itself(n):
        return n and calls_itself(n - 1)

    assert digest(outer(1.0)) == digest(outer(1.0))
    assert digest(outer(1.0)) != digest(outer(2.0))
    assert digest(lambda x: x + 1) != digest(lambda x: x + 2)
    assert digest(np.zeros(2)) != digest(np.zeros((2, 1)))
    assert digest({"a": 1}) != digest({"b": 1})
    assert digest(calls_itself) == digest(calls_itself)
    assert digest(PENDULUM) != digest(DOUBLE)
    kernel = kt.kernel(lambda m, q: q)
    assert digest(kernel) == digest(kernel)


def test_sweep_of_simulations_is_the_simulations():
    starts = np.array([[0.5, 0.1], [1.0, -0.3], [2.0, 0.7]])
    options = {"duration": 0.2, "dt": 1e-2}
    together = sweep(DOUBLE, options, samples={"q0": starts})
    apart = sweep(DOUBLE, options, samples={"q0": starts}, batched=False)
    for k, start in enumerate(starts):
        alone = kt.simulate(DOUBLE, start, **options)
        assert np.array_equal(together["q"][k], alone.q)
        assert np.array_equal(apart["qd"][k], alone.qd)
        assert np.array_equal(together["t"][k], alone.t)
    drift = together["energy"] - together["energy"][:, :1]
    assert np.abs(drift).max() < 1e-4


def test_options_and_parameters_of_simulations_can_vary():
    body = DOUBLE.body_names[1]
    found = sweep(
        DOUBLE,
        {"q0": [1.0, 0.0], "duration": 0.1},
        {"dt": [0.05, 0.025], f"mass:{body}": [1.0, 2.0], "qd0": [[0.0, 0.0], [1.0, 0.0]]},
    )
    assert found.shape == (2, 2, 2)
    assert len(found["q"][0]) == 3
    assert len(found["q"][-1]) == 5
    assert found["energy"][0][0] != found["energy"][2][0]


def test_simulations_that_should_not_be_trusted_are_counted():
    speeds = [[0.0, 0.0], [60.0, 0.0], [1.0, 0.0]]
    with pytest.warns(SweepWarning, match=r"1 of 3 simulations should not be trusted; run 1: .*dt"):
        found = sweep(DOUBLE, {"q0": [0.0, 0.0], "duration": 0.04, "dt": 0.02}, {"qd0": speeds})
    assert [bool(text) for text in found["warning"]] == [False, True, False]
    assert found.ok.all()


@pytest.mark.parametrize(
    ("options", "grid", "message"),
    [
        ({"durations": 1}, {"q0": [[0.0, 0.0]]}, "no option 'durations'.*did you mean 'duration'"),
        ({}, {"q0": [[0.0, 0.0]]}, "needs duration"),
        ({"duration": 1}, {"dt": [0.1]}, "needs q0"),
        ({"duration": 1, "q0": [0, 0]}, {"q0": [[0.0, 0.0]]}, "give it once"),
    ],
)
def test_misuse_of_simulations_is_named(options, grid, message):
    with pytest.raises(SweepError, match=message):
        sweep(DOUBLE, options, grid)


def test_load_needs_a_sweep(tmp_path):
    with pytest.raises(SweepError, match=r"holds no sweep: there is no manifest\.json"):
        Sweep.load(tmp_path)
