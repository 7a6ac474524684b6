"""The public functions: shapes, batches, precision, and what they say when something is wrong."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import aba, crba, energy, rnea


@pytest.fixture
def model():
    kinds = [kt.Revolute("x"), kt.Revolute((1.0, 2.0, -2.0)), kt.Prismatic("y"), kt.Fixed()]
    return kt.samples.random_tree(6, 4, joints=kinds, floating_base=True)


@pytest.fixture
def state(model, rng):
    q = np.array([model.random_configuration(rng) for _ in range(6)]).reshape(2, 3, model.nq)
    qd, x = rng.standard_normal((2, 2, 3, model.nv))
    return q, qd, x


def functions(model):
    """Every public function of the model and joint vectors, with the shape of one result."""
    n, name = model.nv, model.body_names[-1]
    frame = {"frame": "aligned"}
    return {
        "inverse_dynamics": (lambda q, v, x: kt.inverse_dynamics(model, q, v, x), (n,)),
        "forward_dynamics": (lambda q, v, x: kt.forward_dynamics(model, q, v, x), (n,)),
        "crba": (lambda q, v, x: kt.forward_dynamics(model, q, v, x, method="crba"), (n,)),
        "maximal": (lambda q, v, x: kt.forward_dynamics(model, q, v, x, method="maximal"), (n,)),
        "mass_matrix": (lambda q, v, x: kt.mass_matrix(model, q), (n, n)),
        "inverse_mass_matrix": (lambda q, v, x: kt.inverse_mass_matrix(model, q), (n, n)),
        "bias_force": (lambda q, v, x: kt.bias_force(model, q, v), (n,)),
        "gravity_force": (lambda q, v, x: kt.gravity_force(model, q), (n,)),
        "coriolis_matrix": (lambda q, v, x: kt.coriolis_matrix(model, q, v), (n, n)),
        "christoffel": (lambda q, v, x: kt.christoffel(model, q), (n, n, n)),
        "pose": (lambda q, v, x: kt.pose(model, q, name), (4, 4)),
        "jacobian": (lambda q, v, x: kt.jacobian(model, q, name, **frame), (6, n)),
        "jacobian_rate": (lambda q, v, x: kt.jacobian_rate(model, q, v, name, **frame), (6, n)),
        "velocity": (lambda q, v, x: kt.velocity(model, q, v, name), (6,)),
        "acceleration": (lambda q, v, x: kt.acceleration(model, q, v, x, name), (6,)),
        "kinetic_energy": (lambda q, v, x: kt.kinetic_energy(model, q, v), ()),
        "potential_energy": (lambda q, v, x: kt.potential_energy(model, q), ()),
        "momentum": (lambda q, v, x: kt.momentum(model, q, v), (6,)),
        "center_of_mass": (lambda q, v, x: kt.center_of_mass(model, q), (3,)),
        "operational_space_inertia": (
            lambda q, v, x: kt.operational_space_inertia(model, q, model.body_names[1]), (6, 6),
        ),
    }  # fmt: skip


NAMES = list(functions(kt.samples.random_tree(2, 4)))


@pytest.mark.parametrize("name", NAMES)
def test_leading_axes_are_a_batch(name, model, state):
    function, shape = functions(model)[name]
    batch = function(*state)
    assert batch.shape == (2, 3, *shape)
    for index in np.ndindex(2, 3):
        one = function(*(a[index] for a in state))
        assert np.shape(one) == shape
        assert_close(batch[index], one, ulps=0)


@pytest.mark.parametrize("name", NAMES)
def test_batches_broadcast_and_may_be_empty(name, model, state):
    function, shape = functions(model)[name]
    q, qd, x = state
    assert_close(
        function(q, qd[:1, :1], x[:, :1])[1, 2], function(q[1, 2], qd[0, 0], x[1, 0]), ulps=0
    )
    assert function(q[:0], qd[:0], x[:0]).shape == (0, 3, *shape)


@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_precision_of_the_inputs(name, model, state):
    function, _ = functions(model)[name]
    single = [a.astype(np.float32) for a in state]
    result = function(*single)
    assert result.dtype == np.float32
    assert function(*state).dtype == np.float64
    size = np.max(np.abs(result))
    assert np.max(np.abs(result - function(*state))) < 1e-4 * max(size, 1.0)


def test_lists_and_integers_are_taken_as_numbers():
    model = kt.samples.pendulum()
    assert kt.gravity_force(model, [0]).dtype == np.float64
    assert_close(kt.gravity_force(model, [1]), kt.gravity_force(model, np.array([1.0])))


def test_functions_are_the_algorithms(model, state):
    q, qd, x = (a[0, 0] for a in state)
    assert_close(kt.inverse_dynamics(model, q, qd, x), rnea.inverse_dynamics(model, q, qd, x))
    assert_close(kt.forward_dynamics(model, q, qd, x), aba.forward_dynamics(model, q, qd, x))
    assert_close(kt.mass_matrix(model, q), crba.joint_space_inertia(model, q))
    assert_close(kt.kinetic_energy(model, q, qd), energy.kinetic_energy(model, q, qd))


def test_inverse_mass_matrix_inverts_the_mass_matrix(model, state):
    q = state[0][0, 0]
    H = kt.mass_matrix(model, q)
    product = kt.inverse_mass_matrix(model, q) @ H
    assert_close(product, np.eye(model.nv), condition=np.linalg.cond(H))


def test_external_forces_by_name_or_as_an_array(model, state, rng):
    q, qd, qdd = (a[0, 0] for a in state)
    force, name = rng.standard_normal(6), model.body_names[3]
    array = np.zeros((model.body_count, 6))
    array[2] = force
    tau = kt.inverse_dynamics(model, q, qd, qdd, f_ext={name: force})
    assert_close(kt.inverse_dynamics(model, q, qd, qdd, f_ext=array), tau, ulps=0)
    J = kt.jacobian(model, q, name, frame="world")
    assert_close(tau, kt.inverse_dynamics(model, q, qd, qdd) - J.T @ force)
    assert_close(kt.forward_dynamics(model, q, qd, tau, f_ext={name: force}), qdd, condition=1e3)


def test_a_force_on_the_base_changes_nothing(model, state):
    q, qd, qdd = (a[0, 0] for a in state)
    tau = kt.inverse_dynamics(model, q, qd, qdd, f_ext={"base": np.ones(6)})
    assert_close(tau, kt.inverse_dynamics(model, q, qd, qdd), ulps=0)


def test_external_forces_broadcast(model, state, rng):
    q, qd, qdd = state
    forces = rng.standard_normal((3, 6))
    tau = kt.inverse_dynamics(model, q, qd, qdd, f_ext={model.body_names[2]: forces})
    one = kt.inverse_dynamics(
        model, q[1, 2], qd[1, 2], qdd[1, 2], f_ext={model.body_names[2]: forces[2]}
    )
    assert_close(tau[1, 2], one, ulps=0)


def test_external_forces_may_be_spatial_forces(model, state, rng):
    q, qd, x = (a[0, 0] for a in state)
    f = rng.standard_normal((model.body_count, 6))
    forces = [kt.Force.from_array(row) for row in f]
    expected = kt.inverse_dynamics(model, q, qd, x, f)
    by_name = dict(zip(model.body_names[1:], forces, strict=True))
    assert np.array_equal(kt.inverse_dynamics(model, q, qd, x, forces), expected)
    assert np.array_equal(kt.inverse_dynamics(model, q, qd, x, by_name), expected)
    with pytest.raises(kt.errors.SpatialTypeError, match=r"must be a Force.*got a Motion"):
        kt.inverse_dynamics(model, q, qd, x, {"body1": kt.Motion.zero()})


def test_a_force_on_a_frame_is_one_on_its_body():
    panda = kt.samples.panda()
    q, zero, f = panda.neutral(), np.zeros(panda.nv), np.arange(1.0, 7.0)
    on_body = kt.inverse_dynamics(panda, q, zero, zero, {"link7": 3 * f})
    both = kt.inverse_dynamics(panda, q, zero, zero, {"tool": f, "link7": 2 * f})
    assert_close(both, on_body)


@pytest.mark.parametrize("dtype", [np.float32, complex, object])
def test_external_forces_keep_their_kind_of_number(dtype, model, state):
    q, qd, x = (a[0, 0].astype(dtype) for a in state)
    f = np.ones(6).astype(dtype) * (1j if dtype is complex else 1)
    tau = kt.inverse_dynamics(model, q, qd, x, {"body1": f})
    assert tau.dtype == dtype
    array = np.zeros((model.body_count, 6), dtype)
    array[0] = f
    assert np.array_equal(kt.inverse_dynamics(model, q, qd, x, array), tau)
    if dtype is complex:  # linear in the force, so nothing of it may get lost
        assert_close(tau.imag, (kt.inverse_dynamics(model, q, qd, x, {"body1": f / 1j}) - tau).real)


@pytest.mark.parametrize(
    "model", [kt.Model(), kt.ModelBuilder().body("a", joint=kt.Fixed()).build()]
)
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("center_of_mass",)])
def test_a_mechanism_that_cannot_move_has_empty_dynamics(model, name):
    zero = np.zeros(0)
    if name == "operational_space_inertia":
        with pytest.raises(kt.SingularError, match="6 rows but rank 0"):
            kt.operational_space_inertia(model, zero, "base")
        return
    function, shape = functions(model)[name]
    assert np.shape(function(zero, zero, zero)) == shape


def test_velocity_and_acceleration_follow_the_jacobian(model, state):
    q, qd, qdd = (a[0, 0] for a in state)
    name, point = model.body_names[-1], (0.1, -0.2, 0.3)
    for frame, at in (("world", None), ("body", point), ("aligned", point)):
        options = {"frame": frame, "point": at}
        J = kt.jacobian(model, q, name, **options)
        Jd = kt.jacobian_rate(model, q, qd, name, **options)
        assert_close(kt.velocity(model, q, qd, name, **options), J @ qd)
        a = kt.acceleration(model, q, qd, qdd, name, kind="classical", **options)
        spatial = kt.acceleration(model, q, qd, qdd, name, kind="spatial", **options)
        assert_close(spatial[:3], a[:3])
        if frame == "aligned":  # the rate of the point's velocity is its classical acceleration
            assert_close(a, J @ qdd + Jd @ qd, ulps=1000)


class TestMechanismsWithLoops:
    @pytest.fixture
    def four_bar(self):
        return kt.samples.four_bar()

    def test_forward_dynamics_honours_them(self, four_bar):
        q, qd, tau = assembled(four_bar), np.zeros(four_bar.nv), np.zeros(four_bar.nv)
        free = kt.forward_dynamics(four_bar.replace(loops=()), q, qd, tau)
        held = kt.forward_dynamics(four_bar, q, qd, tau)
        assert not np.allclose(free, held)
        assert_close(held, kt.forward_dynamics(four_bar, q, qd, tau, method="implicit"))
        assert_close(held, kt.forward_dynamics(four_bar, q, qd, tau, method="maximal"))

    def test_kinematics_and_energy_do_not_mind(self, four_bar):
        q = assembled(four_bar)
        assert kt.pose(four_bar, q, four_bar.body_names[-1]).shape == (4, 4)
        assert np.isfinite(kt.potential_energy(four_bar, q))

    def test_tree_methods_reject(self, four_bar):
        zero = np.zeros(four_bar.nv)
        with pytest.raises(kt.LoopError, match="method='aba'"):
            kt.forward_dynamics(four_bar, assembled(four_bar), zero, zero, method="aba")


def assembled(model):
    """The samples with loops are assembled at their neutral configuration."""
    return model.neutral()


class TestMessages:
    def test_wrong_length(self, model):
        with pytest.raises(
            kt.ShapeError,
            match=rf"qd must have shape \(\.\.\., nv\) with nv = {model.nv}.*got \(2,\)",
        ):
            kt.bias_force(model, model.neutral(), np.zeros(2))

    def test_positions_where_velocities_belong(self, model):
        with pytest.raises(kt.ShapeError, match="positions and velocities differ in length"):
            kt.bias_force(model, model.neutral(), model.neutral())

    def test_nan_names_the_sample(self, model, state):
        q, qd, x = state
        qd = qd.copy()
        qd[1, 2, 3] = np.nan
        with pytest.raises(
            kt.ShapeError, match=r"qd must be finite, got nan at index 3 of sample \(1, 2\)"
        ):
            kt.inverse_dynamics(model, q, qd, x)

    def test_quaternion_of_wrong_length_names_the_joint(self, model):
        q = model.neutral()
        q[3] = 2.0
        with pytest.raises(
            kt.ShapeError, match=rf"joint '{model.joint_names[0]}'.*unit length, got length 2"
        ):
            kt.mass_matrix(model, q)

    def test_batches_that_do_not_broadcast(self, model, state):
        q, qd, x = state
        with pytest.raises(
            kt.ShapeError, match=r"do not broadcast.*q \(2, 3\), qd \(3,\), qdd \(2,\)"
        ):
            kt.inverse_dynamics(model, q, qd[0], x[:, 0])

    def test_unknown_frame_suggests_a_close_name(self):
        panda = kt.samples.panda()
        with pytest.raises(
            kt.UnknownNameError, match="no frame or body 'tol'; did you mean 'tool'"
        ):
            kt.pose(panda, panda.neutral(), "tol")

    def test_unknown_reference_frame(self, model):
        with pytest.raises(kt.UnknownNameError, match="'world', 'body' or 'aligned', got 'local'"):
            kt.jacobian(model, model.neutral(), "body1", frame="local")

    def test_unknown_method(self, model):
        zero = np.zeros(model.nv)
        with pytest.raises(kt.UnknownNameError, match=r"no method 'abba'; use one of \['aba'"):
            kt.forward_dynamics(model, model.neutral(), zero, zero, method="abba")

    def test_unknown_kind_of_acceleration(self, model):
        zero = np.zeros(model.nv)
        with pytest.raises(kt.UnknownNameError, match="'spatial' or 'classical'"):
            kt.acceleration(model, model.neutral(), zero, zero, "body1", kind="proper")

    def test_external_force_of_wrong_shape(self, model):
        zero = np.zeros(model.nv)
        with pytest.raises(kt.ShapeError, match=r"f_ext\['body1'\] must have shape"):
            kt.inverse_dynamics(model, model.neutral(), zero, zero, f_ext={"body1": np.ones(3)})
        with pytest.raises(kt.ShapeError, match="body_count = 6"):
            kt.inverse_dynamics(model, model.neutral(), zero, zero, f_ext=np.ones((2, 6)))
        with pytest.raises(kt.ShapeError, match="must be finite"):
            kt.inverse_dynamics(model, model.neutral(), zero, zero, f_ext={"body1": [np.inf] * 6})
        with pytest.raises(kt.UnknownNameError, match="did you mean 'body1'"):
            kt.inverse_dynamics(model, model.neutral(), zero, zero, f_ext={"bodi1": np.ones(6)})

    @pytest.mark.parametrize("method", ["aba", "crba"])
    def test_massless_leaf_is_explained(self, method):
        model = (
            kt.ModelBuilder("arm")
            .body(
                "upper",
                joint=kt.Revolute("y"),
                inertia=kt.samples.random_inertia(np.random.default_rng(0)),
            )
            .body("hand", on="upper", joint=kt.Revolute("z"), at=(0, 0, 1))
            .build()
        )
        zero = np.zeros((3, 2))
        with pytest.raises(
            kt.SingularError, match=r"sample \(0,\).*joint 'hand_joint' moves no inertia"
        ):
            kt.forward_dynamics(model, zero, zero, zero, method=method)

    def test_point_of_wrong_shape(self, model):
        with pytest.raises(kt.ShapeError, match="point must have 3 coordinates"):
            kt.jacobian(model, model.neutral(), "body1", frame="body", point=[1, 2])

    def test_a_point_means_nothing_in_world_coordinates(self, model):
        with pytest.raises(kt.ShapeError, match=r"same for every point.*frame='aligned'"):
            kt.jacobian(model, model.neutral(), "body1", frame="world", point=[1, 2, 3])

    def test_text_is_not_a_configuration(self, model):
        with pytest.raises(kt.ShapeError, match="q must hold numbers"):
            kt.mass_matrix(model, ["a"] * model.nq)

    @pytest.mark.parametrize(
        ("q", "got"),
        [([[1, 2], [3]], "rows of different lengths"), ([None], "got a NoneType"), ({}, "a dict")],
    )
    def test_what_is_no_array_of_numbers(self, model, q, got):
        with pytest.raises(kt.ShapeError, match=f"^mass_matrix: q must.*{got}"):
            kt.mass_matrix(model, q)

    @pytest.mark.parametrize(
        "call",
        [
            lambda m: kt.mass_matrix(m, [0]),
            lambda m: kt.forward_dynamics(m, [0], [0], [0]),
            lambda m: kt.pose(m, [0], "tool"),
            lambda m: kt.kinetic_energy(m, [0], [0]),
        ],
    )
    def test_something_else_than_a_model(self, call):
        with pytest.raises(kt.ModelError, match=r"a Model, got str; kinetree.load\('panda'\)"):
            call("panda")
        with pytest.raises(kt.ModelError, match=r"got ModelBuilder; call its build\(\) first"):
            call(kt.ModelBuilder())

    def test_a_result_beyond_the_range_of_floats(self, model, state):
        q, qd, _ = state
        qd = qd.copy()
        qd[1, 0] = 1e200
        with pytest.raises(
            kt.SingularError,
            match=r"sample \(1, 0\): .*too large for float64.*largest argument is qd with 1e\+200",
        ):
            kt.bias_force(model, q, qd)

    def test_external_forces_of_different_batches(self, model):
        zero, f = np.zeros(model.nv), {"body1": np.ones((2, 6)), "body2": np.ones((3, 6))}
        with pytest.raises(kt.ShapeError, match=r"f_ext do not broadcast.*'body1': \(2,\)"):
            kt.inverse_dynamics(model, model.neutral(), zero, zero, f)

    def test_external_force_that_is_not_finite_is_located(self, model):
        zero, f = np.zeros(model.nv), np.ones((2, model.body_count, 6))
        f[1, 3, 2] = np.inf
        with pytest.raises(kt.ShapeError, match=r"inf at index \(3, 2\) of sample \(1,\)"):
            kt.inverse_dynamics(model, model.neutral(), zero, zero, f)

    def test_point_that_is_not_finite(self, model):
        with pytest.raises(kt.ShapeError, match="point must be finite, got nan at index 2"):
            kt.jacobian(model, model.neutral(), "body1", frame="body", point=[1, 2, np.nan])
