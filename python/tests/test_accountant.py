"""The accountant from Python: the figures of the command line, and Python's own kinds of error."""

import collections
import functools
import math
import threading

import pytest

from private_lm import accountant
from private_lm.accountant import dp_sgd

RUN = dp_sgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000)


def test_bounds_are_those_of_the_command_line_to_the_last_bit():
    # accountant epsilon --sampling-probability 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5 --json
    bounds = accountant.epsilon(RUN, 1e-5)
    assert (bounds.lower, bounds.upper) == (1.8282365523148494, 1.8282367799220538)
    assert bounds == accountant.epsilon([RUN], 1e-5)


def test_delta_is_that_of_the_analytic_gaussian_mechanism():
    # Balle & Wang 2018: Φ(1/2 − 1) − e·Φ(−1/2 − 1) at σ = 1 and ε = 1.
    assert abs(accountant.delta({"type": "gaussian", "noise_multiplier": 1.0}, 1.0).upper - 0.1269367375072) < 1e-12


def test_a_group_costs_more_than_its_share():
    assert accountant.epsilon(RUN, 1e-5, group=2).upper > 2 * accountant.epsilon(RUN, 1e-5).upper


def test_calibrated_noise_meets_its_target():
    noise = accountant.noise_multiplier(1.0, 1e-5, lambda z: dp_sgd(0.01, z, 1000))
    assert noise == 1.414619697875139
    assert accountant.epsilon(dp_sgd(0.01, noise, 1000), 1e-5).upper <= 1.0
    assert accountant.epsilon(dp_sgd(0.01, noise * 0.999, 1000), 1e-5).upper > 1.0


def test_an_exception_of_a_callers_function_is_the_callers():
    with pytest.raises(ZeroDivisionError):
        accountant.noise_multiplier(1.0, 1e-5, lambda noise: 1 / 0)


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda: accountant.epsilon(RUN, math.nan), ValueError, "delta = NaN is out of range; allowed: 0 < delta < 1"),
        (lambda: accountant.epsilon(RUN, 1.0), ValueError, "delta = 1 is out of range"),
        (lambda: accountant.epsilon(RUN, 1e-3, units=1000), ValueError, "allowed: below 1/1000"),
        (lambda: accountant.epsilon(RUN, 1e-5, "remove"), ValueError, 'relation = "remove"; allowed'),
        (lambda: accountant.epsilon(RUN, 1e-5, group=-1), ValueError, "group = -1 is out of range"),
        (lambda: accountant.epsilon(RUN, 1e-5, group=1.5), TypeError, "group must be an int, not float"),
        (lambda: accountant.epsilon(RUN, "1e-5"), TypeError, "must be real number, not str"),
        (lambda: accountant.epsilon("gaussian", 1e-5), TypeError, "event: invalid type"),
        (lambda: accountant.epsilon({"type": "gaussian"}, 1e-5), ValueError, "missing field `noise_multiplier`"),
        (lambda: accountant.epsilon({"type": "gauss"}, 1e-5), ValueError, "unknown variant `gauss`"),
        (
            lambda: accountant.epsilon({"type": "gaussian", "noise_multiplier": "1"}, 1e-5),
            TypeError,
            "event: invalid type",
        ),
        (
            lambda: accountant.epsilon({"type": "gaussian", "noise_multiplier": math.nan}, 1e-5),
            ValueError,
            "noise_multiplier = NaN is out of range",
        ),
        (lambda: accountant.noise_multiplier(1.0, 1e-5, 1.0), TypeError, "event_for: give a function"),
        (lambda: accountant.noise_multiplier(1.0, 1e-5, lambda noise: noise), TypeError, "event: invalid type"),
        (lambda: accountant.noise_batch_ratio(1.0, 1e-5, 100, dp_sgd), ValueError, "give steps or examples"),
        (lambda: accountant.from_dp_accounting(object()), ValueError, "object is not taken; allowed: GaussianDpEvent"),
    ],
)
def test_wrong_use_raises_pythons_kind_of_error_with_our_message(ask, kind, words):
    with pytest.raises(kind) as raised:
        ask()
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_event_that_holds_itself_is_refused():
    loop = {"type": "self_composed", "count": 2}
    loop["event"] = loop
    with pytest.raises(ValueError, match="nested deeper than 100"):
        accountant.epsilon(loop, 1e-5)


@pytest.mark.parametrize("field", ["noise_multiplier", "type", "unknown"])
def test_a_field_of_an_event_that_holds_itself_is_refused(field):
    loop, fields = [], {}
    loop.append(loop)
    fields["inner"] = fields
    deep = functools.reduce(lambda inner, _: (inner,), range(100_000), 1)
    hidden = collections.UserList([loop])
    keys = functools.reduce(lambda inner, _: frozenset([inner]), range(100_000), 1)
    for value in [loop, fields, deep, hidden, keys, {"a": {"b": loop}}]:
        with pytest.raises(ValueError, match="nested deeper than 100"):
            accountant.epsilon({"type": "gaussian", "noise_multiplier": 1.0, field: value}, 1e-5)


def test_other_threads_run_during_a_computation():
    seen = []
    done = threading.Event()

    def count():
        while not done.is_set():
            seen.append(1)

    other = threading.Thread(target=count)
    other.start()
    accountant.epsilon(dp_sgd(8192 / 5240387307, 0.3, 100_000), 1e-9)
    done.set()
    other.join()
    assert seen


def test_events_of_dp_accounting_keep_their_kind_and_parameters():
    # Stand-ins with the names and fields of dp_accounting 0.6.
    def event(kind, **fields):
        return type(kind, (), fields)()

    gaussian, laplace = event("GaussianDpEvent", noise_multiplier=5.0), event("LaplaceDpEvent", noise_multiplier=3.0)
    sampled = event("PoissonSampledDpEvent", sampling_probability=0.01, event=gaussian)
    steps = event("SelfComposedDpEvent", event=sampled, count=7)
    events = [gaussian, laplace, steps, event("NoOpDpEvent")]
    assert accountant.from_dp_accounting(event("ComposedDpEvent", events=events)) == {
        "type": "composed",
        "events": [
            {"type": "gaussian", "noise_multiplier": 5.0},
            {"type": "laplace", "noise_multiplier": 3.0},
            dp_sgd(0.01, 5.0, 7),
            {"type": "composed", "events": []},
        ],
    }
    assert accountant.from_dp_accounting(event("PoissonSampledDpEvent", sampling_probability=0.01, event=laplace)) == {
        "type": "poisson_sampled_laplace",
        "sampling_probability": 0.01,
        "noise_multiplier": 3.0,
    }
    with pytest.raises(ValueError, match="PoissonSampledDpEvent is not taken"):
        accountant.from_dp_accounting(event("PoissonSampledDpEvent", sampling_probability=0.01, event=steps))


def test_the_accountant_object_counts_as_opacus_and_dp_accounting_do():
    counted = accountant.CertifiedAccountant()
    for _ in range(1000):
        counted.step(noise_multiplier=1.0, sample_rate=0.01)
    assert counted.history == [(1.0, 0.01, 1000)]
    assert counted.get_epsilon(1e-5) == accountant.epsilon(RUN, 1e-5).upper
    assert counted.get_delta(2.0) == accountant.delta(RUN, 2.0).upper
    # The state that opacus.accountants.RDPAccountant saves.
    loaded = accountant.CertifiedAccountant()
    loaded.load_state_dict({"history": [(1.0, 0.01, 1000)], "mechanism": "rdp"})
    assert loaded.get_epsilon(1e-5) == counted.get_epsilon(1e-5)
    both = loaded.compose({"type": "gaussian", "noise_multiplier": 5.0}, 2)
    assert both is loaded and both.get_epsilon(1e-5) > counted.get_epsilon(1e-5)
    again = accountant.CertifiedAccountant()
    again.load_state_dict(both.state_dict())
    assert again.get_epsilon(1e-5) == both.get_epsilon(1e-5)
    with pytest.raises(ValueError, match="no history"):
        again.load_state_dict({"history": 3})


def test_a_history_of_opacus_is_read_alone_or_in_its_state():
    history = [(1.0, 0.01, 400), (1.0, 0.01, 600)]
    for given in (history, {"history": history, "mechanism": "rdp"}, [list(entry) for entry in history]):
        assert accountant.epsilon(accountant.from_opacus(given), 1e-5) == accountant.epsilon(RUN, 1e-5)
    for wrong in ({"mechanism": "rdp"}, "rdp", [(1.0, 0.01)]):
        with pytest.raises(ValueError, match="no history"):
            accountant.from_opacus(wrong)


def test_a_table_has_every_combination_and_the_figures_of_single_calls():
    rows = accountant.epsilon_table(sample_rate=0.01, noise_multipliers=iter([0.8, 1.0]), epochs=[10], deltas=[1e-5, 1e-6])
    settings = [(row["noise_multiplier"], row["steps"], row["delta"]) for row in rows]
    assert settings == [(0.8, 1000, 1e-5), (0.8, 1000, 1e-6), (1.0, 1000, 1e-5), (1.0, 1000, 1e-6)]
    assert rows[2]["epsilon"] == accountant.epsilon(RUN, 1e-5)
    for chosen in ({}, {"steps": [10], "epochs": [1]}, {"epochs": [0]}):
        with pytest.raises(ValueError, match="epochs"):
            accountant.epsilon_table(sample_rate=0.01, noise_multipliers=[1.0], deltas=[1e-5], **chosen)


def test_noise_for_a_target_takes_the_arguments_of_opacus():
    noise = accountant.get_noise_multiplier(target_epsilon=1.0, target_delta=1e-5, sample_rate=0.01, epochs=10)
    assert noise == accountant.noise_multiplier(1.0, 1e-5, lambda z: dp_sgd(0.01, z, 1000))
    for wrong in ({}, {"steps": 5, "epochs": 1}, {"epochs": -1}, {"epochs": math.nan}):
        with pytest.raises(ValueError):
            accountant.get_noise_multiplier(target_epsilon=1.0, target_delta=1e-5, sample_rate=0.01, **wrong)
