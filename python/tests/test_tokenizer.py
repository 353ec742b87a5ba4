"""The tokenizer from Python."""

import gc
import json

import numpy
import pytest

from private_lm.dp_tokenizer import Tokenizer, train

TEXTS = ["Patient seen for fever.", "", "no fever — café, 12.5 mg", "▁ literal"] * 50


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    path = tmp_path_factory.mktemp("notes") / "notes.jsonl"
    lines = (json.dumps({"text": f"Patient {number % 9} seen for fever.", "user": number}) for number in range(2000))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def trained(notes):
    # A test key: the noise is the same in every run of this test.
    options = {"unit": "user", "user_field": "user", "units": 2000, "vocab_size": 400, "test_key": 7}
    return train(notes, notes.parent / "vocabulary", epsilon=2.0, delta=1e-6, **options)


def test_training_writes_the_files_of_the_command_and_returns_its_statement(trained, notes):
    tokenizer, privacy = trained
    written = json.loads((notes.parent / "vocabulary" / "privacy.json").read_text())
    assert privacy == written
    assert privacy["private"] is False and "test key" in privacy["reason"]
    assert privacy["epsilon"]["upper"] <= 2.0
    assert tokenizer.token_to_id("▁fever") is not None
    assert tokenizer.to_json() == (notes.parent / "vocabulary" / "tokenizer.json").read_text()


def test_text_comes_back_and_batches_agree_with_single_texts(trained):
    tokenizer, _ = trained
    for threads in (1, 2, 5):
        assert tokenizer.encode_batch(TEXTS, threads=threads) == [tokenizer.encode(text) for text in TEXTS]
    texts = TEXTS[:3]
    assert tokenizer.decode_batch(tokenizer.encode_batch(texts)) == texts
    assert len(tokenizer) == tokenizer.vocab_size <= 400


def test_arrays_hold_the_same_ids_as_lists(trained):
    tokenizer, _ = trained
    ids, offsets = tokenizer.encode_batch(TEXTS, output="numpy")
    assert ids.dtype == numpy.uint32 and offsets.dtype == numpy.int64
    lists = [ids[offsets[place] : offsets[place + 1]].tolist() for place in range(len(TEXTS))]
    assert lists == tokenizer.encode_batch(TEXTS)
    assert tokenizer.decode(ids[: offsets[1]]) == TEXTS[0]
    empty = tokenizer.encode_batch([], output="numpy")
    assert [array.tolist() for array in empty] == [[], [0]]


def test_a_batch_leaves_the_garbage_collector_as_it_was(trained):
    tokenizer, _ = trained
    try:
        for change in (gc.disable, gc.enable):
            change()
            tokenizer.encode_batch(TEXTS)
            assert gc.isenabled() == (change is gc.enable)
    finally:
        gc.enable()


def test_a_tokenizer_survives_its_file(trained, notes):
    tokenizer, _ = trained
    for same in (Tokenizer.from_file(notes.parent / "vocabulary"), Tokenizer.from_json(tokenizer.to_json())):
        assert same.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)


def test_wrong_use_raises_pythons_kind_of_error_with_our_message(trained, notes, tmp_path):
    tokenizer, _ = trained
    vocabulary = tmp_path / "vocabulary"
    damaged = tmp_path / "tokenizer.json"
    damaged.write_text("{")
    cases = [
        (lambda: tokenizer.encode(3), TypeError, "str"),
        (lambda: tokenizer.encode_batch("one text"), TypeError, "encode() takes one text"),
        (lambda: tokenizer.encode_batch(["a", None]), TypeError, "str"),
        (lambda: tokenizer.encode_batch([], output="torch"), ValueError, 'allowed: "lists" or "numpy"'),
        (lambda: tokenizer.encode_batch(TEXTS, threads=0), ValueError, "threads = 0; allowed: 1 to 256"),
        (lambda: tokenizer.encode_batch(TEXTS * 100_000, threads=257), ValueError, "threads = 257; allowed: 1 to 256"),
        (lambda: tokenizer.encode_batch(TEXTS, threads=2**64), OverflowError, ""),
        (lambda: tokenizer.decode([-1]), OverflowError, ""),
        (lambda: Tokenizer.from_file(tmp_path / "missing.json"), FileNotFoundError, "missing.json"),
        (lambda: Tokenizer.from_file(damaged), ValueError, "tokenizer.json"),
        (lambda: Tokenizer.from_json("[]"), ValueError, ""),
        (lambda: train(tmp_path / "missing.txt", vocabulary, epsilon=1, delta=1e-6), FileNotFoundError, "missing.txt"),
        (lambda: train(notes, vocabulary), ValueError, "--epsilon and --delta"),
        (lambda: train(notes, vocabulary, epsilon=1, delta=1e-3, units=2000), ValueError, "allowed: below 1/2000"),
        (lambda: train(notes, vocabulary, epsilon=float("nan"), delta=1e-6), ValueError, "epsilon"),
        (lambda: train(notes, vocabulary, epsilon=1, delta=1e-6, epsilom=2), ValueError, "--epsilom"),
        (lambda: train(notes, vocabulary, epsilon=1, delta=1e-6, text_field="body"), ValueError, "body"),
    ]
    for ask, kind, words in cases:
        with pytest.raises(kind) as raised:
            ask()
        assert words in str(raised.value)
        assert "\n" not in str(raised.value)
