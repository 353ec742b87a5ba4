"""Certified lower and upper bounds on ε and δ of differentially private training.

An event is a dict, as in JSON, or a list of events on the same data:

>>> epsilon({"type": "gaussian", "noise_multiplier": 2.0}, 1e-6, "replace_one").upper
4.8865541174627225

Noise multipliers are σ over what adding or removing one unit changes. Relations are "add_or_remove_one" (default),
"replace_one" and "zero_out".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._native import (
    Bounds,
    Estimate,
    NoiseBatch,
    Split,
    audited_epsilon,
    batch_size,
    delta,
    epsilon,
    epsilon_of_mu,
    epsilon_of_rates,
    exact_epsilon,
    gaussian_equivalent,
    noise_batch_ratio,
    noise_multiplier,
    odds,
    renyi_divergence,
    renyi_epsilon,
    smallest_batch_size,
    split_budget,
    statement,
    steps,
    true_positive_rate,
    zcdp,
)

if TYPE_CHECKING:
    from ._native import _Relation

__all__ = [
    "Bounds",
    "CertifiedAccountant",
    "Estimate",
    "NoiseBatch",
    "Split",
    "audited_epsilon",
    "batch_size",
    "delta",
    "dp_sgd",
    "epsilon",
    "epsilon_of_mu",
    "epsilon_of_rates",
    "epsilon_table",
    "exact_epsilon",
    "from_dp_accounting",
    "from_opacus",
    "gaussian_equivalent",
    "get_noise_multiplier",
    "noise_batch_ratio",
    "noise_multiplier",
    "odds",
    "renyi_divergence",
    "renyi_epsilon",
    "smallest_batch_size",
    "split_budget",
    "statement",
    "steps",
    "true_positive_rate",
    "zcdp",
]


def dp_sgd(sampling_probability: float, noise_multiplier: float, steps: int) -> dict[str, object]:
    """The event of `steps` steps of DP-SGD on Poisson samples: Opacus's (σ, q, steps) in another order.

    >>> dp_sgd(0.01, 1.0, 1000)["count"]
    1000
    """
    return {"type": "self_composed", "event": _poisson_step(sampling_probability, noise_multiplier), "count": steps}


def _poisson_step(sampling_probability: float, noise_multiplier: float) -> dict[str, object]:
    return {
        "type": "poisson_sampled_gaussian",
        "sampling_probability": sampling_probability,
        "noise_multiplier": noise_multiplier,
    }


def from_dp_accounting(event: Any) -> dict[str, object]:
    """The event of a `DpEvent` of dp_accounting, for the relation "add_or_remove_one".

    Takes Gaussian and Laplace events, Poisson-sampled ones of these, and compositions. Their noise multipliers have
    the same meaning under that relation alone.

    Raises ValueError for an event of another kind.
    """
    kind = type(event).__name__
    if kind == "NoOpDpEvent":
        return {"type": "composed", "events": []}
    if kind == "GaussianDpEvent":
        return {"type": "gaussian", "noise_multiplier": event.noise_multiplier}
    if kind == "LaplaceDpEvent":
        return {"type": "laplace", "noise_multiplier": event.noise_multiplier}
    if kind == "PoissonSampledDpEvent" and type(event.event).__name__ == "GaussianDpEvent":
        return _poisson_step(event.sampling_probability, event.event.noise_multiplier)
    if kind == "PoissonSampledDpEvent" and type(event.event).__name__ == "LaplaceDpEvent":
        return {
            "type": "poisson_sampled_laplace",
            "sampling_probability": event.sampling_probability,
            "noise_multiplier": event.event.noise_multiplier,
        }
    if kind == "SelfComposedDpEvent":
        return {"type": "self_composed", "event": from_dp_accounting(event.event), "count": event.count}
    if kind == "ComposedDpEvent":
        return {"type": "composed", "events": [from_dp_accounting(inner) for inner in event.events]}
    raise ValueError(
        f"{kind} is not taken; allowed: GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent of either, "
        "SelfComposedDpEvent, ComposedDpEvent and NoOpDpEvent; write another event as a dict"
    )


def from_opacus(history: Mapping[str, Any] | Sequence[Any]) -> list[dict[str, object]]:
    """The events of a history of Opacus, [(noise multiplier, sample rate, steps), …], or of the state that holds it.

    >>> from_opacus([(1.1, 256 / 60000, 14062)])[0]["count"]
    14062

    Raises ValueError for another object.
    """
    entries = history.get("history") if isinstance(history, Mapping) else history
    if not isinstance(entries, Sequence) or isinstance(entries, str) or any(len(entry) != 3 for entry in entries):
        raise ValueError("no history of (noise multiplier, sample rate, steps)")
    return [dp_sgd(float(rate), float(noise), int(count)) for noise, rate, count in entries]


def epsilon_table(
    *,
    sample_rate: float,
    noise_multipliers: Iterable[float],
    deltas: Iterable[float],
    steps: Iterable[int] = (),
    epochs: Iterable[float] = (),
    relation: _Relation = "add_or_remove_one",
) -> list[dict[str, Any]]:
    """Bounds on ε of DP-SGD on Poisson samples for all combinations of noise multipliers, steps and δ: the rows of `accountant epsilon`.

    E epochs are E / sample_rate steps, rounded up.

    >>> [row] = epsilon_table(sample_rate=0.01, noise_multipliers=[1.0], epochs=[10], deltas=[1e-5])
    >>> row["steps"], row["epsilon"].upper
    (1000, 1.8282367799220538)

    Raises ValueError if neither or both of `steps` and `epochs` are given, and for a value out of range.
    """
    counts, passes = list(steps), list(epochs)
    if bool(counts) == bool(passes):
        raise ValueError("give steps or epochs, one of them")
    if passes and not (0 < sample_rate <= 1 and all(0 < each < 1e15 for each in passes)):
        raise ValueError(f"epochs = {passes}, sample_rate = {sample_rate}; allowed: above 0, and a rate of at most 1")
    counts += [math.ceil(each / sample_rate * (1 - 1e-12)) for each in passes]
    noises, failures = list(noise_multipliers), list(deltas)
    return [
        {
            "noise_multiplier": noise,
            "steps": count,
            "delta": failure,
            "epsilon": epsilon(dp_sgd(sample_rate, noise, count), failure, relation),
        }
        for noise in noises
        for count in counts
        for failure in failures
    ]


def get_noise_multiplier(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epochs: float | None = None,
    steps: int | None = None,
) -> float:
    """The smallest noise multiplier of DP-SGD on Poisson samples whose certified upper bound on ε is at most `target_epsilon`.

    The arguments are those of `opacus.accountants.utils.get_noise_multiplier`; E epochs are ⌊E / sample_rate⌋ steps, as there. ε of
    the returned noise never exceeds the target, whereas Opacus searches to a tolerance of 0.01 with an accountant of its choice.

    >>> get_noise_multiplier(target_epsilon=3.0, target_delta=1e-5, sample_rate=256 / 60000, steps=14062)
    0.9684082749779752

    Raises ValueError if neither or both of `epochs` and `steps` are given, for a value out of range, and for a target that no noise
    meets.
    """
    if (epochs is None) == (steps is None):
        raise ValueError("give epochs or steps, one of them")
    if steps is None and epochs is not None:
        if not (0 < sample_rate <= 1 and 0 < epochs < 1e15):
            raise ValueError(f"epochs = {epochs}, sample_rate = {sample_rate}; allowed: above 0, and a rate of at most 1")
        steps = int(epochs / sample_rate)
    count = steps
    return noise_multiplier(target_epsilon, target_delta, lambda noise: dp_sgd(sample_rate, noise, int(count or 0)))


class CertifiedAccountant:
    """Counts what a training loop spends, with the methods of Opacus's accountants and of dp_accounting's.

    Every figure is a certified bound: the true ε is never above it.

    >>> accountant = CertifiedAccountant()
    >>> for _ in range(1000):
    ...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> accountant.history
    [(1.0, 0.01, 1000)]
    >>> accountant.get_epsilon(1e-5)
    1.8282367799220538
    """

    def __init__(self, relation: _Relation = "add_or_remove_one") -> None:
        self.relation = relation
        self.history: list[tuple[float, float, int]] = []
        self._composed: list[Mapping[str, Any]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Adds one step of DP-SGD on a Poisson sample. Equal steps in a row share an entry of `history`, as in Opacus."""
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def compose(self, event: Any, count: int = 1) -> CertifiedAccountant:
        """Adds an event `count` times: a dict, or a `DpEvent` of dp_accounting. Returns itself, as dp_accounting's accountants do.

        Raises ValueError for an event of dp_accounting that `from_dp_accounting` does not take.
        """
        inner = event if isinstance(event, Mapping) else from_dp_accounting(event)
        self._composed.append({"type": "self_composed", "event": inner, "count": count})
        return self

    def events(self) -> list[Mapping[str, Any]]:
        """All events so far, for the other functions of this module."""
        return [dp_sgd(rate, noise, count) for noise, rate, count in self.history] + self._composed

    def get_epsilon(self, delta: float) -> float:
        """The certified upper bound on ε at `delta` of all events so far.

        Raises ValueError for a value out of range.
        """
        return epsilon(self.events(), delta, self.relation).upper

    def get_delta(self, epsilon: float) -> float:
        """The certified upper bound on δ at `epsilon` of all events so far.

        Raises ValueError for a value out of range.
        """
        return delta(self.events(), epsilon, self.relation).upper

    def state_dict(self) -> dict[str, Any]:
        """The state, in the form that Opacus's accountants save, with events of `compose` beside the history."""
        return {"history": list(self.history), "mechanism": "certified", "events": list(self._composed)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state that this class or an accountant of Opacus saved. Steps keep their meaning: (σ, q, steps).

        Raises ValueError for another object.
        """
        from_opacus(state)
        self.history = [(float(noise), float(rate), int(count)) for noise, rate, count in state["history"]]
        self._composed = list(state.get("events", []))
