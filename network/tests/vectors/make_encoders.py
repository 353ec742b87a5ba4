"""Writes the folders of randomly initialised BERT and T5 models of transformers beside this file: their weights,
logits at the targets of a few examples, and the gradient norms of these examples' losses.

Run as `python make_encoders.py` in this folder; the versions used are written to each expected.json.
"""

import json
import os
import platform

import torch
import transformers
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, T5Config, T5ForConditionalGeneration

VOCABULARY = 61
ORACLE = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"


def bert_examples(pairs):
    one = dict(input=[2, 17, 17, 60, 4, 3, 42, 4, 9, 11, 3, 30, 4, 8, 3], segments=[0] * 11 + [1] * 4,
               positions=[4, 7, 12], targets=[5, 17, 42], decoder_input=[], sentence=1)
    two = dict(input=[2, 7, 7, 4, 7, 3, 7, 3], segments=[0] * 6 + [1] * 2,
               positions=[3], targets=[7], decoder_input=[], sentence=0)
    three = dict(input=[2, 4, 3], segments=[0, 0, 0], positions=[1], targets=[33], decoder_input=[], sentence=None)
    examples = [one, two, three]
    return examples if pairs else [{**example, "sentence": None} for example in examples]


def t5_examples():
    long = [5 + 7 * i % 50 for i in range(36)]
    return [
        dict(input=long[:20] + [59] + long[20:] + [58, 1], decoder_input=[0, 59, 8, 8, 14, 58, 3], targets=[59, 8, 8, 14, 58, 3, 1]),
        dict(input=[9, 9, 9, 59, 1], decoder_input=[0, 59, 9], targets=[59, 9, 1]),
        dict(input=[1], decoder_input=[0], targets=[1]),
    ]


def run(model, example):
    """Logits at the targets, mean negative log-likelihood of the targets, and the whole loss."""
    ids = torch.tensor([example["input"]])
    targets = torch.tensor(example["targets"])
    if example["decoder_input"]:
        output = model(input_ids=ids, decoder_input_ids=torch.tensor([example["decoder_input"]]))
        logits = output.logits[0]
        nll = cross_entropy(logits, targets)
        return logits, nll, nll
    output = model(input_ids=ids, token_type_ids=torch.tensor([example["segments"]]))
    everywhere = output.prediction_logits if hasattr(output, "prediction_logits") else output.logits
    logits = everywhere[0, example["positions"]]
    nll = loss = cross_entropy(logits, targets)
    if example["sentence"] is not None:
        loss = nll + cross_entropy(output.seq_relationship_logits, torch.tensor([example["sentence"]]))
    return logits, nll, loss


def write(folder, model, examples):
    os.makedirs(folder, exist_ok=True)
    with torch.no_grad():  # away from the initial values, so that biases and gains take part
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    model.eval().save_pretrained(folder, safe_serialization=True)
    for example in examples:
        example["logits"] = run(model, example)[0].tolist()
    model.double()
    for example in examples:
        model.zero_grad()
        _, nll, loss = run(model, example)
        loss.backward()
        squares = sum((p.grad**2).sum() for p in model.parameters() if p.grad is not None)
        example["mean_nll"], example["gradient_norm"] = nll.item(), torch.sqrt(squares).item()
    with open(f"{folder}/expected.json", "w", encoding="utf-8") as file:
        json.dump({"oracle": ORACLE, "dtype": "logits in float32, mean_nll and gradient_norm in float64",
                   "examples": examples}, file)
    for extra in ["generation_config.json"]:
        if os.path.exists(f"{folder}/{extra}"):
            os.remove(f"{folder}/{extra}")


torch.manual_seed(20240611)
bert = dict(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
            max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
write("bert_tiny", BertForPreTraining(BertConfig(**bert)), bert_examples(pairs=True))
write("bert_masked_tiny", BertForMaskedLM(BertConfig(**bert)), bert_examples(pairs=False))
t5 = dict(vocab_size=VOCABULARY, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, dropout_rate=0.0,
          decoder_start_token_id=0)
write("t5_tiny", T5ForConditionalGeneration(T5Config(**t5)), t5_examples())
gated = T5ForConditionalGeneration(T5Config(**t5, feed_forward_proj="gated-gelu", tie_word_embeddings=False))
# This version of transformers ties a new model's head whatever its configuration; a loaded one's it leaves alone.
gated.lm_head.weight = torch.nn.Parameter(0.25 * torch.randn(VOCABULARY, t5["d_model"]))
gated.config.tie_word_embeddings = False
write("t5_v1_1_tiny", gated, t5_examples())
