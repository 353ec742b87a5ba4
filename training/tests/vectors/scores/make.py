"""Writes expected.json: scores of random labels and tags, computed by scikit-learn and seqeval.

Run as `python make.py` in this folder; the versions used are written to expected.json.
"""

import json
import random
from importlib.metadata import version

from seqeval.metrics import f1_score as entity_f1, precision_score as entity_precision, recall_score as entity_recall
from seqeval.metrics.sequence_labeling import get_entities
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

draw = random.Random(15)
LABELS = 5


def guess(actual, right):
    return actual if draw.random() < right else draw.randrange(LABELS - 1)


def single(count, right):
    actual = [draw.randrange(LABELS) for _ in range(count)]
    predicted = [guess(label, right) for label in actual]
    scores = {
        "accuracy": accuracy_score(actual, predicted),
        "macro_f1": f1_score(actual, predicted, average="macro", zero_division=0),
        "micro_f1": f1_score(actual, predicted, average="micro", zero_division=0),
        "matthews": matthews_corrcoef(actual, predicted),
    }
    return {"actual": actual, "predicted": predicted, **scores}


def binary(count, right):
    """Two labels, with GLUE's F1: that of label 1."""
    actual = [draw.randrange(2) for _ in range(count)]
    predicted = [label if draw.random() < right else 1 - label for label in actual]
    scores = {
        "f1": f1_score(actual, predicted, zero_division=0),
        "macro_f1": f1_score(actual, predicted, average="macro", zero_division=0),
        "micro_f1": f1_score(actual, predicted, average="micro", zero_division=0),
        "matthews": matthews_corrcoef(actual, predicted),
    }
    return {"actual": actual, "predicted": predicted, **scores}


def numbers(count, noise, equal=False):
    """Numbers with many ties, as T5 writes those of STS-B."""
    actual = [round(draw.randrange(26) * 0.2, 1) for _ in range(count)]
    predicted = [2.0 if equal else round(round((x + draw.gauss(0, noise)) / 0.2) * 0.2, 1) for x in actual]
    scores = {
        "pearson": None if equal else float(pearsonr(actual, predicted).statistic),
        "spearman": None if equal else float(spearmanr(actual, predicted).statistic),
    }
    return {"actual": actual, "predicted": predicted, **scores}


def several(count):
    actual = [[int(draw.random() < 0.3) for _ in range(LABELS)] for _ in range(count)]
    predicted = [[int(draw.random() < 0.2 + 0.5 * one) for one in row] for row in actual]
    for row in predicted:
        row[-1] = 0
    scores = {
        "accuracy": accuracy_score(actual, predicted),
        "macro_f1": f1_score(actual, predicted, average="macro", zero_division=0),
        "micro_f1": f1_score(actual, predicted, average="micro", zero_division=0),
    }
    return {"actual": actual, "predicted": predicted, **scores}


def tags(names, sentences):
    actual = [[draw.choice(names) for _ in range(draw.randrange(1, 12))] for _ in range(sentences)]
    predicted = [[tag if draw.random() < 0.7 else draw.choice(names) for tag in row] for row in actual]
    scores = {
        "precision": entity_precision(actual, predicted),
        "recall": entity_recall(actual, predicted),
        "f1": entity_f1(actual, predicted),
    }
    return {"actual": actual, "predicted": predicted, "mentions": [get_entities(row) for row in actual], **scores}


file = {
    "oracle": f"scikit-learn {version('scikit-learn')}, seqeval {version('seqeval')}",
    "single": [single(40, 0.6), single(7, 0.2), single(1, 1.0), single(12, 1.0)],
    "several": [several(40), several(3)],
    "tags": [
        tags(["O", "B-X", "I-X", "B-Y-Z", "I-Y-Z"], 20),
        tags(["O", "I-X", "I-Y"], 10),
        tags(["O", "B-X", "I-X", "E-X", "S-X", "E-Y", "S-Y"], 20),
    ],
}
file["single"] += [binary(40, 0.7), binary(9, 0.4)]
file["numbers"] = [numbers(60, 1.0), numbers(7, 0.2), numbers(30, 20.0), numbers(5, 0.0, equal=True)]
file["oracle"] += f", SciPy {version('scipy')}"
with open("expected.json", "w", encoding="utf-8") as out:
    json.dump(file, out)
