"""Loads a run folder with transformers and prints, as JSON, its logits at the targets of the examples on stdin, and the
special tokens of its tokenizer, if it has one. `tests/encoders.rs`, `tests/decoders.rs` and `tests/families.rs` run it where
TRANSFORMERS_PYTHON names a Python that has it.

    python check_written.py RUN < examples.json
"""

import json
import os
import sys

import torch
import transformers
from transformers import AutoTokenizer

folder = sys.argv[1]
with open(f"{folder}/config.json", encoding="utf-8") as file:
    architecture = json.load(file)["architectures"][0]
model, report = getattr(transformers, architecture).from_pretrained(folder, output_loading_info=True)
model.eval()
tokenizer = AutoTokenizer.from_pretrained(folder) if os.path.exists(f"{folder}/tokenizer.json") else None
logits = []
for example in json.load(sys.stdin):
    ids = torch.tensor([example["input"]])
    with torch.no_grad():
        tensors = {}
        if example.get("decoder_input"):
            tensors["decoder_input_ids"] = torch.tensor([example["decoder_input"]])
        if example.get("segments"):
            tensors["token_type_ids"] = torch.tensor([example["segments"]])
        output = model(input_ids=ids, **tensors)
        everywhere = output.prediction_logits if hasattr(output, "prediction_logits") else output.logits
        rows = everywhere[0] if everywhere.dim() == 3 else everywhere
        logits.append((rows[example["positions"]] if example.get("positions") else rows).tolist())
report = {
    "logits": logits,
    "missing": sorted(map(str, report["missing_keys"])),
    "unexpected": sorted(map(str, report["unexpected_keys"])),
}
if tokenizer:
    report |= {"mask": tokenizer.mask_token, "cls": tokenizer.cls_token, "sep": tokenizer.sep_token,
               "pad": tokenizer.pad_token, "sentinel": tokenizer.convert_tokens_to_ids("<extra_id_0>")}
json.dump(report, sys.stdout)
