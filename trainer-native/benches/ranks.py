"""Measures a trainer that was built with MPI on several ranks of this machine.

    python ranks.py TRAINER start [--records N,...] [--ranks P,...] [--vocabulary]
    python ranks.py TRAINER steps [--pairs K] [--ranks P,...]

`start` prints what each rank read, computed and kept at most before the first step, of generated JSON lines, and what the figures
grow with. With --vocabulary, a private vocabulary is released before. `steps` prints the seconds of a step on two ranks of one thread and
on one rank of two, in turn, and those on other numbers of ranks beside the estimate of `scaling`. Needs mpirun and Linux.
"""

import argparse
import json
import math
import os
import pathlib
import random
import signal
import statistics
import subprocess
import tempfile
import time

WORDS = [f"w{number}" for number in range(5_000)]
MODEL = {"family": "gpt2", "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 32}
STEPS = 8


def write_text(path, records):
    """Writes records of about 160 bytes."""
    random.seed(records)
    texts = [" ".join(WORDS[int(4_999 * random.random() ** 4)] for _ in range(28)) for _ in range(20_000)]
    with open(path, "w") as file:
        for number in range(records):
            file.write(f'{{"id": {number:9}, "text": "{texts[number % 20_000]}"}}\n')


def write_plan(folder, name, **changes):
    plan = {
        "version": 1, "name": name,
        "data": {"source": {"path": "text.jsonl"}, "units": changes.pop("units")},
        "privacy": {"unit": "record", "relation": "add_or_remove_one", "delta": 1e-9, "epsilon": 8.0, "sampling": "poisson"},
        "tokenizer": "bytes",
        "model": MODEL,
        "training": {
            "objective": "causal_lm", "expected_batch_size": 32, "steps": 1_000, "l2_clip_norm": 1.0, "optimizer": {"adamw": {}},
            "learning_rate": {"peak": 1e-3},
        },
        "performance": {"device": "cpu", "physical_batch": 8, "checkpoint_every": 1_000_000},
    }
    for key, value in changes.items():
        plan[key] = {**plan[key], **value} if isinstance(plan[key], dict) and key != "model" else value
    path = folder / f"{name}.json"
    path.write_text(json.dumps(plan))
    return path


class Run:
    """A run on several ranks, which ends when this is left."""

    def __init__(self, trainer, plan, out, ranks, threads=None):
        self.out = out
        command = [trainer, "--plan", plan, "--out", out, "--test-key", "1"]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PMIX_MCA_gds="hash")
        environment["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"
        if ranks > 1:
            bind = ["--bind-to", "core:overload-allowed"] if threads else ["--bind-to", "none"]
            command = ["mpirun", "--oversubscribe", *bind, "-np", str(ranks), *command]
        elif threads:
            command = ["taskset", "-c", ",".join(str(core) for core in range(threads)), *command]
        self.log = open(f"{out}.log", "w")
        self.process = subprocess.Popen([str(part) for part in command], env=environment, stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks():
            os.kill(rank, signal.SIGKILL)
        self.process.wait()

    def ranks(self):
        def is_rank(entry):
            try:
                parts = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                return False
            return parts[0].endswith(b"trainer-native") and str(self.out).encode() in parts
        return sorted(int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit() and is_rank(entry))

    def wait_for_steps(self, steps):
        """Waits until so many steps are charged, and returns the time."""
        ledger = self.out / "ledger.jsonl"
        while not ledger.exists() or ledger.read_text().count('"kind":"step"') < steps:
            if self.process.poll() is not None:
                raise SystemExit(pathlib.Path(self.log.name).read_text())
            time.sleep(0.002)
        return time.monotonic()


def used_by(process):
    """Returns the bytes that a process read, its CPU seconds, and the MB that it took at most."""
    lines = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines())
    read = int(pathlib.Path(f"/proc/{process}/io").read_text().split()[1])
    ticks = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return read, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(lines["VmHWM"].split()[0]) / 1024


def slope(points):
    """Returns the slope of a line through points, by least squares."""
    xs, ys = zip(*points)
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a in xs)


def start(options, folder):
    tokenizer = {"train": {"model": "unigram", "vocab_size": 2_000, "release": "pooled", "byte_fallback": True}}
    rows = []
    for records in options.records:
        text = folder / "text.jsonl"
        write_text(text, records)
        size = text.stat().st_size
        plan = write_plan(folder, f"start{records}", units=records, tokenizer=tokenizer if options.vocabulary else "bytes")
        for ranks in options.ranks:
            with Run(options.trainer, plan, folder / f"start{records}-{ranks}", ranks) as run:
                run.wait_for_steps(1)
                used = [used_by(rank) for rank in run.ranks()]
            # The ranks compare the digests of their executables.
            executable = os.path.getsize(options.trainer) * ranks if ranks > 1 else 0
            read = sum(one[0] for one in used) - executable
            rows.append((records, ranks, read, max(one[2] for one in used)))
            print(
                f"{records} records, {size / 1e6:.0f} MB, {ranks} ranks: bytes read / text {read / size:.2f}; CPU seconds of each",
                ", ".join(f"{one[1]:.2f}" for one in used) + "; MB of each", ", ".join(f"{one[2]:.0f}" for one in used), flush=True,
            )
        text.unlink()
    if len(options.records) > 1:
        for ranks in options.ranks:
            points = [(math.log(row[0]), math.log(row[2])) for row in rows if row[1] == ranks]
            print(f"{ranks} ranks: bytes read grow with records to the power {slope(points):.3f}")
    if len(options.ranks) > 1:
        for records in options.records:
            points = [(math.log(row[1]), math.log(row[2])) for row in rows if row[0] == records]
            print(f"{records} records: bytes read grow with ranks to the power {slope(points):.3f}")
    print(f"memory of a rank grows by {slope([(row[0] / row[1], row[3] * 2**20) for row in rows]):.1f} bytes a record of its share")


def steps(options, folder):
    write_text(folder / "text.jsonl", 20_000)
    model = {**MODEL, "d_model": 256, "layers": 2, "heads": 4, "d_ff": 1_024, "context": 64}
    plan = write_plan(folder, "steps", units=20_000, model=model, training={"expected_batch_size": 64, "steps": 40}, privacy={"epsilon": 8.0})
    found = {}

    def measure(name, ranks, threads):
        with Run(options.trainer, plan, folder / f"steps-{ranks}-{threads}-{len(found.get(name, []))}", ranks, threads) as run:
            begun = run.wait_for_steps(2)
            found.setdefault(name, []).append((run.wait_for_steps(2 + STEPS) - begun) / STEPS)

    for _ in range(options.pairs):
        measure("1 x 2", 1, 2)
        measure("2 x 1", 2, 1)
        for ranks in options.ranks:
            if ranks != 2:
                measure(f"{ranks} x 1", ranks, 1)
        print({name: [round(second, 3) for second in seconds] for name, seconds in found.items()}, flush=True)
    middle = {name: statistics.median(seconds) for name, seconds in found.items()}
    ratios = [one / two for one, two in zip(found["1 x 2"], found["2 x 1"])]
    print(f"2 ranks x 1 thread against 1 x 2: median of {len(ratios)} pairs {statistics.median(ratios):.3f}")
    command = [options.trainer, "scaling", "--plan", plan, "--ranks", ",".join(map(str, options.ranks)), "--workers", "1", "--json"]
    estimate = lambda seconds: json.loads(subprocess.check_output([str(part) for part in [*command, "--micro-batch-seconds", seconds]]))
    # The time of a micro-batch is measured on one rank of one thread.
    micro_batch = middle["1 x 1"] / estimate(1.0)["ranks"][0]["step_seconds"]
    for row in estimate(micro_batch)["ranks"]:
        print(f"{row['ranks']} ranks of one thread: {middle[str(row['ranks']) + ' x 1']:.3f} s a step, estimated {row['step_seconds']:.3f}")


def main():
    numbers = lambda text: [int(float(number)) for number in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", type=pathlib.Path)
    parser.add_argument("what", choices=["start", "steps"])
    parser.add_argument("--records", type=numbers, default=[10**5, 10**6, 10**7])
    parser.add_argument("--ranks", type=numbers, default=[1, 2, 4])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--vocabulary", action="store_true")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        {"start": start, "steps": steps}[options.what](options, pathlib.Path(folder))
    print(f"load {os.getloadavg()[0]:.1f}")


main()
