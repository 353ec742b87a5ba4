"""Writes the vectors of gpt2_tiny, gemma_tiny, gemma_untied and llama_tiny: randomly initialised models of transformers, their logits
and their gradient norms.

Run as `python make_decoders.py` in this folder. Each expected.json names the versions that wrote it.
"""

import json
import platform

import torch
import transformers
from transformers import GemmaConfig, GemmaForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM


def write(folder, model_class, config, seed, spread, middle, digits):
    torch.manual_seed(seed)
    model = model_class(config).eval()
    with torch.no_grad():  # away from the initial values, so that biases and gains take part
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    model.save_pretrained(folder, safe_serialization=True)
    examples = []
    for tokens in [[5, 17, 17, *middle, 8, 9, 11, 2, 30], [1, 2], [7, 7, 7, 7, 7, 7]]:
        ids = torch.tensor([tokens])
        double = model_class(config).double()
        double.load_state_dict(model.state_dict())
        loss = double(input_ids=ids, labels=ids).loss
        loss.backward()
        norm = torch.sqrt(sum((p.grad**2).sum() for p in double.parameters())).item()
        logits = [[round(x, digits) for x in row] for row in model(input_ids=ids).logits[0].tolist()]
        examples.append({"tokens": tokens, "logits": logits, "mean_nll": loss.item(), "gradient_norm": norm})
    oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
    with open(f"{folder}/expected.json", "w", encoding="utf-8") as file:
        json.dump({"oracle": oracle, "dtype": "logits in float32, mean_nll and gradient_norm in float64",
                   "examples": examples}, file)


def gemma(folder, tied, layers, kv_heads):
    config = GemmaConfig(
        vocab_size=37, max_position_embeddings=12, hidden_size=8, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=kv_heads, head_dim=6, intermediate_size=20, tie_word_embeddings=tied,
        bos_token_id=1, eos_token_id=1, pad_token_id=None,  # a padding token's row would get no gradient
    )
    write(folder, GemmaForCausalLM, config, seed=20240608, spread=0.3, middle=[36, 0, 3, 12], digits=6)


gpt2 = GPT2Config(
    vocab_size=61, n_positions=12, n_embd=16, n_layer=2, n_head=4, n_inner=40,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1, eos_token_id=1,
)
write("gpt2_tiny", GPT2LMHeadModel, gpt2, seed=20240607, spread=0.15, middle=[60, 0, 3, 42], digits=20)
gemma("gemma_tiny", tied=True, layers=2, kv_heads=2)
gemma("gemma_untied", tied=False, layers=1, kv_heads=1)
llama = LlamaConfig(
    vocab_size=37, max_position_embeddings=12, hidden_size=8, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=6, intermediate_size=20, rms_norm_eps=1e-5, tie_word_embeddings=False,
    bos_token_id=1, eos_token_id=1, pad_token_id=None,
)
write("llama_tiny", LlamaForCausalLM, llama, seed=20240609, spread=0.3, middle=[36, 0, 3, 12], digits=6)
