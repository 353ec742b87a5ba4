"""Tokens per word of private vocabularies by the number of records, beside SentencePiece's without privacy on the same records.

usage: python size.py CORPUS RECORDS [ARGUMENT OF TRAIN ...], with sentencepiece, zstd and a built dp-tokenizer (DP_TOKENIZER names it).
CORPUS: irc, novels, de or abstracts (sentences of BC5CDR), of ../../../shared/data. A record is the unit; ε = 3, δ = 1e-6, test keys 1 to 5. The kind of words follows from RECORDS unless an argument names it.
"""

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece

DATA = Path(__file__).resolve().parents[3] / "shared/data"
FILES = {"irc": "irc/irc_train.jsonl.zst", "novels": "novels/novels.jsonl.zst", "de": "multi30k/train.de.gz",
         "abstracts": "ner/BC5CDR-IOB/train.tsv.zst"}
PROGRAM = os.environ.get("DP_TOKENIZER", "dp-tokenizer")


def records(corpus):
    path = DATA / FILES[corpus]
    if path.suffix == ".gz":
        lines = gzip.open(path, "rt").read().splitlines()
    else:
        raw = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
        if corpus == "abstracts":
            sentences = raw.decode().split("\n\n")
            lines = [" ".join(row.split("\t")[0] for row in sentence.splitlines()) for sentence in sentences]
        else:
            lines = [json.loads(line)["text"] for line in raw.decode().splitlines()]
    lines = [line for line in (" ".join(line.split()) for line in lines) if line]
    random.Random(7).shuffle(lines)
    held = min(8000, len(lines) // 10)
    return lines[:held], lines[held:]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, check=True, text=True).stdout


def main(corpus, count, *options):
    held, train = records(corpus)
    words = sum(len(line.split()) for line in held)
    with tempfile.TemporaryDirectory() as folder:
        text, test, out = (os.path.join(folder, name) for name in ("text.txt", "test.txt", "out"))
        Path(text).write_text("\n".join(train[: int(count)]) + "\n")
        Path(test).write_text("\n".join(held) + "\n")
        model = os.path.join(folder, "sp")
        sentencepiece.SentencePieceTrainer.train(
            input=text, model_prefix=model, vocab_size=8000, model_type="unigram", byte_fallback=True,
            normalization_rule_name="identity", hard_vocab_limit=False, character_coverage=1.0, minloglevel=2,
        )
        peer = sentencepiece.SentencePieceProcessor(model_file=model + ".model")
        ceiling = sum(map(len, peer.encode(held))) / words
        scores = []
        for key in "12345":
            budget = ["--epsilon", "3", "--delta", "1e-6", "--units", count, "--test-key", key, "--overwrite"]
            run("train", "--input", text, "--out", out, *budget, *options)
            scores.append(len(run("encode", "--tokenizer", out, "--input", test).split()) / words)
        mean = sum(scores) / len(scores)
        spread = max(abs(score - mean) for score in scores)
        print(f"{corpus} {count}: SentencePiece {ceiling:.3f}, private {mean:.3f} ± {spread:.3f} ({mean / ceiling - 1:+.1%})")


main(*sys.argv[1:])
