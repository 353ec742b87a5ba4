"""Times the queries of benches/peers.rs with other accountants.

A JSON object a line comes in: name, q, steps, delta, and sigma (answered with epsilon) or target (with the noise
multiplier that meets this epsilon). A JSON object a line goes out: tool, query, value, ms.
"""

import json
import signal
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")

# A peer that needs longer for one answer is given up.
PATIENCE = 20


def dp_accounting(name):
    import dp_accounting as dp

    def accountant():
        if name == "rdp":
            return dp.rdp.RdpAccountant()
        return dp.pld.PLDAccountant(value_discretization_interval=1e-4)

    def event(q, sigma, steps):
        return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma)), steps)

    def epsilon(q, sigma, steps, delta):
        return accountant().compose(event(q, sigma, steps)).get_epsilon(delta)

    def noise(q, steps, delta, target):
        return dp.calibrate_dp_mechanism(accountant, lambda sigma: event(q, sigma, steps), target, delta, tol=1e-4)

    return {"epsilon": epsilon, "noise": noise}


def opacus(name):
    from opacus.accountants import create_accountant
    from opacus.accountants.utils import get_noise_multiplier

    def epsilon(q, sigma, steps, delta):
        accountant = create_accountant(name)
        accountant.history = [(sigma, q, steps)]
        return accountant.get_epsilon(delta)

    def noise(q, steps, delta, target):
        return get_noise_multiplier(
            target_epsilon=target, target_delta=delta, sample_rate=q, steps=steps, accountant=name
        )

    return {"epsilon": epsilon, "noise": noise}


def prv():
    from prv_accountant import PRVAccountant, PoissonSubsampledGaussianMechanism

    def epsilon(q, sigma, steps, delta):
        step = PoissonSubsampledGaussianMechanism(sampling_probability=q, noise_multiplier=sigma)
        accountant = PRVAccountant(
            prvs=[step], max_self_compositions=[steps], eps_error=0.01, delta_error=1e-3 * delta
        )
        return accountant.compute_epsilon(delta=delta, num_self_compositions=[steps])[2]

    return {"epsilon": epsilon}


MAKERS = {
    "dp_accounting PLD": lambda: dp_accounting("pld"),
    "dp_accounting RDP": lambda: dp_accounting("rdp"),
    "prv-accountant": prv,
    "Opacus PRV": lambda: opacus("prv"),
    "Opacus RDP": lambda: opacus("rdp"),
}


def give_up(number, frame):
    raise TimeoutError(f"no answer in {PATIENCE} s")


def answer(tool, query):
    """The value and the median time: of three rounds where they are short, of one where they are long."""
    question, given = ("noise", "target") if "target" in query else ("epsilon", "sigma")
    if question not in tool:
        return {"failed": "it has no calibration"}
    arguments = {name: query[name] for name in ("q", given, "steps", "delta")}
    times = []
    while len(times) < 3 and sum(times) < 1e3:
        signal.alarm(PATIENCE)
        start = time.perf_counter()
        try:
            value = tool[question](**arguments)
        except Exception as failure:  # A peer that gives up is a result.
            return {"failed": str(failure)[:80]}
        finally:
            signal.alarm(0)
        times.append(1e3 * (time.perf_counter() - start))
    return {"value": float(value), "ms": statistics.median(times)}


def main():
    signal.signal(signal.SIGALRM, give_up)
    tools = {}
    for name, make in MAKERS.items():
        try:
            tools[name] = make()
        except ImportError as missing:
            print(json.dumps({"tool": name, "missing": str(missing)}), flush=True)
    for line in sys.stdin:
        query = json.loads(line)
        for name, tool in tools.items():
            print(json.dumps({"tool": name, "query": query["name"], **answer(tool, query)}), flush=True)


main()
