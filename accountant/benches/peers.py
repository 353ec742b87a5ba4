"""Times the queries of benches/peers.rs with other accountants; one JSON object a line: tool, query, epsilon, ms."""

import json
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")


def dp_accounting(name, orders):
    import dp_accounting as dp

    def accountant():
        if name == "rdp":
            return dp.rdp.RdpAccountant(orders)
        return dp.pld.PLDAccountant(value_discretization_interval=1e-4)

    def epsilon(q, sigma, steps, delta):
        step = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
        return accountant().compose(dp.SelfComposedDpEvent(step, steps)).get_epsilon(delta)

    return epsilon


def opacus_prv():
    from opacus.accountants import PRVAccountant

    def epsilon(q, sigma, steps, delta):
        accountant = PRVAccountant()
        accountant.history = [(sigma, q, steps)]
        return accountant.get_epsilon(delta)

    return epsilon


def main():
    tools = {}
    makers = {
        "dp_accounting PLD": lambda: dp_accounting("pld", None),
        "dp_accounting RDP": lambda: dp_accounting("rdp", None),
        "Opacus PRV": opacus_prv,
    }
    for tool, make in makers.items():
        try:
            tools[tool] = make()
        except ImportError as missing:
            print(json.dumps({"tool": tool, "missing": str(missing)}), flush=True)
    for line in sys.stdin:
        query = json.loads(line)
        for tool, epsilon in tools.items():
            times = []
            try:
                for _ in range(3):
                    start = time.perf_counter()
                    value = epsilon(query["q"], query["sigma"], query["steps"], query["delta"])
                    times.append(1e3 * (time.perf_counter() - start))
            except Exception as failure:  # A peer that gives up is a result.
                print(json.dumps({"tool": tool, "query": query["name"], "failed": str(failure)[:80]}), flush=True)
                continue
            answer = {"tool": tool, "query": query["name"], "epsilon": float(value)}
            print(json.dumps({**answer, "ms": statistics.median(times)}), flush=True)


main()
