"""Training from Python: plans, runs, texts of models, and private text that leaves no file."""

import importlib
import json
import os
import signal
import subprocess
import sys

import numpy
import pyarrow
import pytest

import private_lm
from private_lm import dp_tokenizer, run

RECORDS = [{"text": f"Patient {n % 9} seen for fever in room {n % 7}.", "user": n, "score": 0.5} for n in range(400)]
OPTIONS = {"units": 400, "epsilon": 8.0, "unit": "record", "text_field": "text", "task": "language-model"}


def table(records=RECORDS):
    return pyarrow.Table.from_pylist(records)


@pytest.fixture(scope="module")
def plan():
    proposed = private_lm.init(table(), name="python", steps=4, batch_size=8, context=16, **OPTIONS)
    # A small model: these tests are about Python.
    proposed.plan["model"].update(d_model=16, d_ff=32, layers=1, heads=2)
    proposed.plan["privacy"]["spare_steps"] = 30
    return proposed.plan


@pytest.fixture(scope="module")
def finished(plan, tmp_path_factory):
    folder, seen = tmp_path_factory.mktemp("runs") / "run", []
    done = private_lm.train(plan, folder, data=table(), test_key=3, progress=seen.append, quiet=True)
    return folder, done, seen


def test_a_plan_for_a_frame_names_no_file_of_this_machine(plan):
    assert plan["data"]["source"] == {"path": "frame.jsonl"}
    assert private_lm.certify(plan).epsilon.upper <= 8.0


def test_init_writes_the_same_plan_for_a_file(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    proposed = private_lm.init(path, tmp_path / "plan.json", **OPTIONS)
    assert json.loads((tmp_path / "plan.json").read_text()) == proposed.plan
    assert "ε ≤ 8.0" in proposed.reasons
    with pytest.raises(FileExistsError):
        private_lm.init(path, tmp_path / "plan.json", **OPTIONS)


def test_a_run_is_verified_and_its_progress_is_public(finished):
    folder, done, seen = finished
    assert (done.steps_done, done.steps_planned, done.private) == (4, 4, False)
    assert done.epsilon == private_lm.verify(folder).epsilon
    assert seen[-1].steps_done <= seen[-1].steps_planned == 4 and seen[0].epsilon > 0


def test_metrics_are_numpy_arrays_of_one_length(finished):
    metrics = run.metrics(finished[0])
    assert metrics["step"].tolist() == [4.0] and metrics["epsilon"].dtype == numpy.float64
    assert metrics["epsilon"][0] <= 8.0 and numpy.isnan(metrics["evaluation_nll"][0])


def test_generate_continues_one_prompt_or_many_and_repeats_with_a_seed(finished):
    folder = finished[0]
    texts = private_lm.generate(folder, ["Patient", "fever"], tokens=5, seed=1)
    assert len(texts) == 2 and texts == private_lm.generate(folder, ["Patient", "fever"], tokens=5, seed=1)
    assert isinstance(private_lm.generate(folder, "Patient", tokens=5, temperature=0), str)
    with pytest.raises(ValueError, match="temperature: -1 is out of range"):
        private_lm.generate(folder, "Patient", temperature=-1)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("kind", ["file", "pandas", "polars", "batch", "dicts", "generator", "dictionary", "large"])
def test_every_kind_of_text_gives_the_same_weights(kind, plan, finished, tmp_path):
    text = table()
    if kind == "file":
        (tmp_path / "frame.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        plan, text = tmp_path / "plan.json", None
    elif kind in ("pandas", "polars"):
        text = importlib.import_module(kind).DataFrame(RECORDS)
    elif kind == "batch":
        text = text.to_batches()[0]
    elif kind == "dicts":
        text = RECORDS
    elif kind == "generator":
        text = (record for record in RECORDS)
    else:
        wanted = pyarrow.dictionary(pyarrow.int32(), pyarrow.string()) if kind == "dictionary" else pyarrow.large_string()
        text = text.set_column(0, "text", text["text"].cast(wanted))
    private_lm.train(plan, tmp_path / "run", data=text, test_key=3, quiet=True)
    assert weights(tmp_path / "run") == weights(finished[0])


def test_the_text_leaves_no_file_and_a_plan_in_a_file_gets_it_at_its_path(plan, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    during = []
    private_lm.train(path, tmp_path / "run", data=table(), test_key=3, quiet=True, progress=lambda _: during.append(os.readlink(tmp_path / "frame.jsonl")))
    assert during and not os.path.lexists(tmp_path / "frame.jsonl")
    assert list(temporary.iterdir()) == []
    holding = [path for path in tmp_path.rglob("*") if path.is_file() and b"seen for fever" in path.read_bytes()]
    assert holding == []
    (tmp_path / "frame.jsonl").write_text("{}")
    with pytest.raises(FileExistsError, match="leave data out"):
        private_lm.train(path, tmp_path / "other", data=table(), quiet=True)
    assert (tmp_path / "frame.jsonl").read_text() == "{}"


def test_an_exception_of_progress_ends_the_run_with_a_checkpoint_and_resume_continues_it(plan, finished, tmp_path):
    class Enough(Exception):
        pass

    def stop(figures):
        raise Enough

    with pytest.raises(Enough):
        private_lm.train(plan, tmp_path / "run", data=table(), test_key=3, progress=stop, quiet=True)
    assert not (tmp_path / "run" / "certificate.json").exists()
    done = private_lm.train(plan, tmp_path / "run", data=table(), test_key=3, resume=True, quiet=True)
    assert done.steps_done == 4 and weights(tmp_path / "run") == weights(finished[0])


def test_ctrl_c_ends_the_run_with_a_checkpoint_and_python_goes_on(plan, tmp_path):
    long = json.loads(json.dumps(plan))
    long["training"]["steps"] = 5000
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(long))
    script = f"""
import sys, private_lm
records = [{{"text": "Patient seen for fever.", "user": n}} for n in range(400)]
try:
    private_lm.train({str(path)!r}, {str(tmp_path / "run")!r}, data=records, test_key=3, quiet=True, progress=lambda _: print("on", flush=True))
except KeyboardInterrupt as interrupt:
    print(interrupt)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "on\n"
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[0]
    assert "everything done so far is saved" in said and "resume=True" in said
    assert process.returncode == 0 and list((tmp_path / "run").glob("checkpoint*"))


def test_wrong_use_raises_pythons_kind_of_error_with_our_message(plan, tmp_path):
    cases = [
        (lambda: private_lm.init(table(), epsilon=8.0, text_field="text", task="language-model", unit="record"), ValueError, "units: say about how many"),
        (lambda: private_lm.init(table(), **{**OPTIONS, "text_field": "body"}), ValueError, 'no field "body"'),
        (lambda: private_lm.init(tmp_path / "none.jsonl", **OPTIONS), FileNotFoundError, "none.jsonl"),
        (lambda: private_lm.init(3, **OPTIONS), TypeError, "give a frame of pandas"),
        (lambda: private_lm.init([{"text": object()}], **OPTIONS), TypeError, "record 1 is a"),
        (lambda: private_lm.init({"text": ["a"]}, **OPTIONS), TypeError, "give a frame of pandas"),
        (lambda: private_lm.train(plan, tmp_path / "a", data=3), TypeError, "give a frame of pandas"),
        (lambda: private_lm.train(plan, tmp_path / "b", data=table(), device="gpu"), ValueError, 'device = "gpu"; allowed'),
        (lambda: private_lm.train(plan, tmp_path / "c", data=table(), progress=3), TypeError, "progress: give a function"),
        (lambda: private_lm.train(plan, tmp_path / "d", data=table(), physical_batch=0), ValueError, "physical_batch = 0"),
        (lambda: private_lm.train(tmp_path / "none.json", data=table()), FileNotFoundError, "none.json"),
        (lambda: private_lm.generate(tmp_path / "none"), FileNotFoundError, "none"),
    ]
    for ask, kind, words in cases:
        with pytest.raises(kind) as raised:
            ask()
        assert words in str(raised.value), raised.value
        assert "\n" not in str(raised.value)
    with pytest.raises(TypeError) as raised:
        private_lm.train(plan, tmp_path / "e", data=[{"text": b"secret words"}])
    assert "secret" not in str(raised.value)


def test_one_run_at_a_time(plan, tmp_path):
    refused = []

    def again(_):
        with pytest.raises(RuntimeError, match="a run is in progress"):
            private_lm.train(plan, tmp_path / "second", data=table(), quiet=True)
        refused.append(True)

    private_lm.train(plan, tmp_path / "first", data=table(), test_key=3, progress=again, quiet=True)
    assert refused


def test_a_vocabulary_is_trained_on_a_frame(tmp_path):
    tokenizer, privacy = dp_tokenizer.train(table(), tmp_path / "vocabulary", epsilon=4.0, delta=1e-6, units=400, vocab_size=400, test_key=7)
    assert tokenizer.decode(tokenizer.encode("fever")) == "fever" and privacy["epsilon"]["upper"] <= 4.0


def test_nested_columns_and_nulls_keep_their_form(tmp_path):
    chats = [{"messages": [{"role": "user", "content": f"question {n}"}, {"role": "assistant", "content": None}], "day": n} for n in range(5)]
    with pytest.raises(ValueError, match="chat needs a model"):
        private_lm.init(pyarrow.Table.from_pylist(chats), units=400, epsilon=8.0, unit="record")
