"""Certified lower and upper bounds on ε and δ of differentially private training.

An event is a dict, as in JSON, or a list of events on the same data:

>>> epsilon({"type": "gaussian", "noise_multiplier": 2.0}, 1e-6, "replace_one").upper
4.8865541174627225

Noise multipliers are σ over what adding or removing one unit changes. Relations are "add_or_remove_one" (default),
"replace_one" and "zero_out".
"""

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

__all__ = [
    "Bounds",
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
    "exact_epsilon",
    "from_dp_accounting",
    "gaussian_equivalent",
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


def from_dp_accounting(event) -> dict[str, object]:  # type: ignore[no-untyped-def]
    """The event of a `DpEvent` of dp_accounting, for the relation "add_or_remove_one".

    Takes Gaussian and Laplace events, Poisson-sampled Gaussian events, and compositions of these. Their noise multipliers have
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
    if kind == "SelfComposedDpEvent":
        return {"type": "self_composed", "event": from_dp_accounting(event.event), "count": event.count}
    if kind == "ComposedDpEvent":
        return {"type": "composed", "events": [from_dp_accounting(inner) for inner in event.events]}
    raise ValueError(
        f"{kind} is not taken; allowed: GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent of a GaussianDpEvent, "
        "SelfComposedDpEvent, ComposedDpEvent and NoOpDpEvent; write another event as a dict"
    )
