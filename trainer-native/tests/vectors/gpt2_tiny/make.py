"""Writes the vectors in this folder: a randomly initialised GPT-2 of transformers, its logits and its gradient norms.

Run as `python make.py` in this folder; the versions used are written to expected.json.
"""

import json
import platform

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(20240607)
config = GPT2Config(
    vocab_size=61, n_positions=12, n_embd=16, n_layer=2, n_head=4, n_inner=40,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1, eos_token_id=1,
)
model = GPT2LMHeadModel(config).eval()
with torch.no_grad():  # away from the initial values, so that biases and gains take part
    for parameter in model.parameters():
        parameter.add_(0.15 * torch.randn_like(parameter))
model.save_pretrained(".", safe_serialization=True)

examples = []
for tokens in [[5, 17, 17, 60, 0, 3, 42, 8, 9, 11, 2, 30], [1, 2], [7, 7, 7, 7, 7, 7]]:
    ids = torch.tensor([tokens])
    double = GPT2LMHeadModel(config).double()
    double.load_state_dict(model.state_dict())
    loss = double(input_ids=ids, labels=ids).loss
    loss.backward()
    norm = torch.sqrt(sum((p.grad**2).sum() for p in double.parameters())).item()
    logits = model(input_ids=ids).logits[0].tolist()
    examples.append({"tokens": tokens, "logits": logits, "mean_nll": loss.item(), "gradient_norm": norm})

oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
with open("expected.json", "w", encoding="utf-8") as file:
    json.dump({"oracle": oracle, "dtype": "logits in float32, mean_nll and gradient_norm in float64",
               "examples": examples}, file)
