"""Writes the vectors of the tasks: randomly initialised models of transformers, and of each example its logits, its loss
and its gradient norm; and the sum of the gradients, each clipped to the median norm, from a loop over the examples.

Run as `python make_tasks.py` in this folder; the versions used are written to expected.json.
"""

import json
import platform

import torch
import transformers
from safetensors.torch import save_file
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import (
    BertConfig, BertForSequenceClassification, BertForTokenClassification, GPT2Config, GPT2ForSequenceClassification,
    GPT2ForTokenClassification, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration, T5ForSequenceClassification,
)

LONG = [5, 17, 17, 22, 1, 3, 12, 8, 9, 11, 2, 20]


def classified(targets):
    return [{"input": tokens, "targets": target} for tokens, target in zip([LONG, [1], [7, 7, 4, 7]], targets)]


PAIRS = [dict(example, segments=[0] * (len(example["input"]) // 2) + [1] * -(-len(example["input"]) // 2))
         for example in classified([[2], [0], [1]])]
TAGGED = [
    {"input": LONG, "positions": [1, 2, 5, 6, 10], "targets": [0, 2, 2, 1, 0]},
    {"input": [4], "positions": [0], "targets": [1]},
    {"input": [7, 7, 4, 7], "positions": [0, 1, 3], "targets": [2, 1, 0]},
]
CONTINUED = [
    {"input": LONG, "positions": [8, 9, 10, 11], "targets": [11, 2, 20, 0]},
    {"input": [6, 0, 3], "positions": [1, 2], "targets": [3, 0]},
    {"input": [0], "positions": [0], "targets": [0]},
]
WRITTEN = [
    {"input": LONG, "decoder_input": [0, 4, 4, 9], "targets": [4, 4, 9, 1]},
    {"input": [6, 1], "decoder_input": [0], "targets": [1]},
    {"input": [3, 2, 1], "decoder_input": [0, 19, 3, 3, 8, 21, 7, 2, 11, 12, 13, 3], "targets": [19, 3, 3, 8, 21, 7, 2, 11, 12, 13, 3, 1]},
]


def loss_of(model, example):
    tensors = {"input_ids": torch.tensor([example["input"]])}
    if "segments" in example:
        tensors["token_type_ids"] = torch.tensor([example["segments"]])
    # A classifier shifts the encoder's input itself.
    if "decoder_input" in example and model.config.problem_type is None:
        tensors["decoder_input_ids"] = torch.tensor([example["decoder_input"]])
    logits = model(**tensors).logits[0]
    targets = torch.tensor(example["targets"])
    if model.config.problem_type == "multi_label_classification":
        return logits[None], binary_cross_entropy_with_logits(logits, targets.to(logits.dtype))
    logits = logits[None] if logits.dim() == 1 else logits
    if "positions" in example:
        logits = logits[example["positions"]]
    return logits, cross_entropy(logits, targets)


def write(folder, config, kind, examples):
    torch.manual_seed(20240610)
    model = kind(config).eval()
    with torch.no_grad():  # away from the initial values, so that gains and biases take part
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder, safe_serialization=True)
    double = kind(config).double().eval()
    double.load_state_dict(model.state_dict())
    written, gradients = [], []
    for example in examples:
        double.zero_grad()
        logits, loss = loss_of(double, example)
        loss.backward()
        gradient = {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in double.named_parameters()}
        norm = torch.sqrt(sum((one**2).sum() for one in gradient.values())).item()
        gradients.append((norm, gradient))
        written.append(dict(example, logits=logits.tolist(), loss=loss.item(), gradient_norm=norm))
    bound = sorted(norm for norm, _ in gradients)[len(gradients) // 2]
    names = gradients[0][1].keys()
    clipped = {name: sum(min(1.0, bound / norm) * one[name] for norm, one in gradients).float().contiguous() for name in names}
    save_file(clipped, f"{folder}/clipped.safetensors")
    oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
    with open(f"{folder}/expected.json", "w", encoding="utf-8") as file:
        json.dump({"oracle": oracle, "dtype": "float64", "l2_clip_norm": bound, "examples": written}, file)


def gpt2(**fields):
    return GPT2Config(
        vocab_size=23, n_positions=12, n_embd=8, n_layer=2, n_head=2, n_inner=12, attn_pdrop=0.0, embd_pdrop=0.0,
        resid_pdrop=0.0, bos_token_id=0, eos_token_id=0, pad_token_id=0, classifier_dropout=0.0, **fields,
    )


def bert(**fields):
    return BertConfig(
        vocab_size=23, max_position_embeddings=12, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        pad_token_id=None, **fields,  # a padding token's row would get no gradient
    )


# The width of a head is not the width of the model divided by the number of heads, as in T5 1.1 small and mT5 small.
def t5(**fields):
    return T5Config(
        vocab_size=23, d_model=8, d_kv=6, d_ff=12, num_layers=2, num_decoder_layers=2, num_heads=2, dropout_rate=0.0,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, **fields,
    )


def ended(targets):
    """Texts with T5's end-of-text token, one of them a pair, and the decoder's input."""
    texts = [[5, 17, 17, 22, 3, 12, 8, 9, 11, 2, 20, 1], [6, 1], [7, 7, 1, 4, 7, 1]]
    return [{"input": text, "decoder_input": [0, *text[:-1]], "targets": target} for text, target in zip(texts, targets)]


CLASSES = [[2], [0], [1]]
SETS = [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
write("gpt2_classifier_tiny", gpt2(num_labels=3), GPT2ForSequenceClassification, classified(CLASSES))
write("bert_classifier_tiny", bert(num_labels=3), BertForSequenceClassification, PAIRS)
several = {"num_labels": 3, "problem_type": "multi_label_classification"}
write("bert_multi_label_tiny", bert(**several), BertForSequenceClassification, classified(SETS))
write("bert_tagger_tiny", bert(num_labels=3), BertForTokenClassification, TAGGED)
write("gpt2_tagger_tiny", gpt2(num_labels=3), GPT2ForTokenClassification, TAGGED)
write("gpt2_text_to_text_tiny", gpt2(), GPT2LMHeadModel, CONTINUED)
write("t5_text_to_text_tiny", t5(), T5ForConditionalGeneration, WRITTEN)
single = {"num_labels": 3, "problem_type": "single_label_classification"}
write("t5_classifier_tiny", t5(**single), T5ForSequenceClassification, ended(CLASSES))
write("t5_v1_1_classifier_tiny", t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False, **single), T5ForSequenceClassification, ended(CLASSES))
