"""Writes the vectors of gpt2_classifier_tiny and bert_classifier_tiny: randomly initialised classifiers of transformers,
their logits and their gradient norms.

Run as `python make_classifiers.py` in this folder; the versions used are written to expected.json.
"""

import json
import platform

import torch
import transformers
from transformers import (
    BertConfig, BertForSequenceClassification, GPT2Config, GPT2ForSequenceClassification,
)

EXAMPLES = [([5, 17, 17, 22, 1, 3, 12, 8, 9, 11, 2, 20], 2), ([1], 0), ([7, 7, 4, 7], 1)]


def write(folder, config, kind):
    torch.manual_seed(20240610)
    model = kind(config).eval()
    with torch.no_grad():  # away from the initial values, so that gains and biases take part
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder, safe_serialization=True)
    double = kind(config).double().eval()
    double.load_state_dict(model.state_dict())
    examples = []
    for tokens, label in EXAMPLES:
        double.zero_grad()
        logits = double(input_ids=torch.tensor([tokens])).logits
        torch.nn.functional.cross_entropy(logits, torch.tensor([label])).backward()
        grads = [p.grad for p in double.parameters() if p.grad is not None]
        norm = torch.sqrt(sum((grad**2).sum() for grad in grads)).item()
        examples.append({"tokens": tokens, "label": label, "logits": logits[0].tolist(), "gradient_norm": norm})
    oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
    with open(f"{folder}/expected.json", "w", encoding="utf-8") as file:
        json.dump({"oracle": oracle, "dtype": "float64", "examples": examples}, file)


write(
    "gpt2_classifier_tiny",
    GPT2Config(
        vocab_size=23, n_positions=12, n_embd=8, n_layer=2, n_head=2, n_inner=12, num_labels=3,
        attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, bos_token_id=0, eos_token_id=0, pad_token_id=0,
    ),
    GPT2ForSequenceClassification,
)
write(
    "bert_classifier_tiny",
    BertConfig(
        vocab_size=23, max_position_embeddings=12, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=12, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        pad_token_id=None,  # a padding token's row would get no gradient
    ),
    BertForSequenceClassification,
)
