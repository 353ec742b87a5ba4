"""Writes the vectors of llama_tiny: a randomly initialised Llama of transformers, its logits and its gradient norms.

Run as `python make.py` in this folder; the versions used are written to expected.json.
"""

import json
import platform

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(20240609)
config = LlamaConfig(
    vocab_size=37, max_position_embeddings=12, hidden_size=8, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=6, intermediate_size=20, rms_norm_eps=1e-5, tie_word_embeddings=False,
    bos_token_id=1, eos_token_id=1, pad_token_id=None,  # a padding token's row would get no gradient
)
model = LlamaForCausalLM(config).eval()
with torch.no_grad():  # away from the initial values, so that gains take part
    for parameter in model.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
model.save_pretrained(".", safe_serialization=True)
examples = []
for tokens in [[5, 17, 17, 36, 0, 3, 12, 8, 9, 11, 2, 30], [1, 2], [7, 7, 7, 7, 7, 7]]:
    ids = torch.tensor([tokens])
    double = LlamaForCausalLM(config).double()
    double.load_state_dict(model.state_dict())
    loss = double(input_ids=ids, labels=ids).loss
    loss.backward()
    norm = torch.sqrt(sum((p.grad**2).sum() for p in double.parameters())).item()
    logits = [[round(x, 6) for x in row] for row in model(input_ids=ids).logits[0].tolist()]
    examples.append({"tokens": tokens, "logits": logits, "mean_nll": loss.item(), "gradient_norm": norm})
oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
with open("expected.json", "w", encoding="utf-8") as file:
    json.dump({"oracle": oracle, "dtype": "logits in float32, mean_nll and gradient_norm in float64",
               "examples": examples}, file)
