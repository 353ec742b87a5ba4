"""Writes one folder for each decoder with RMS norms: a randomly initialised model of transformers with few but odd sizes, and what
it computes: logits, generated texts, and of one step the sum of the clipped gradients of all parameters and of adapters.

Run as `python make.py [NAME ...]` in this folder. Each expected.json names the versions that wrote it.
"""

import json
import os
import platform
import shutil
import sys

import torch
import transformers
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModelForCausalLM, Gemma2Config, Gemma3TextConfig, GemmaConfig, GenerationConfig, GraniteConfig, LlamaConfig, MistralConfig,
    Olmo2Config, Phi3Config, Qwen2Config, Qwen3Config, SmolLM3Config, VaultGemmaConfig,
)

VOCABULARY, CONTEXT, END = 29, 16, 2
TEXTS = [[5, 17, 17, 28, 0, 3, 12, 8, 9, 11, 2, 20, 4, 7], [1, 4], [7, 7, 7, 7, 7, 7]]
PROMPTS = [[3, 1, 4, 1, 5], [9], [2, 6, 5, 3, 5, 8, 9]]
RANK, ALPHA = 1, 3.0
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
COMMON = dict(
    vocab_size=VOCABULARY, max_position_embeddings=CONTEXT, hidden_size=8, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=6, intermediate_size=12, bos_token_id=1, eos_token_id=END,
    pad_token_id=None,  # a padding token's row would get no gradient
)
MODELS = {
    "llama3": LlamaConfig(**COMMON, rope_parameters={**LLAMA3, "rope_theta": 50.0}, rms_norm_eps=1e-3, tie_word_embeddings=True),
    "llama_biased": LlamaConfig(**COMMON, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-5, tie_word_embeddings=False),
    "gemma_linear": GemmaConfig(**COMMON, rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 300.0}, rms_norm_eps=1e-4),
    "qwen2": Qwen2Config(**COMMON, rope_theta=1000000.0, tie_word_embeddings=True),
    "qwen2_window": Qwen2Config(**COMMON, rope_theta=700.0, use_sliding_window=True, sliding_window=3, max_window_layers=1,
                                rms_norm_eps=1e-5, tie_word_embeddings=False),
    "qwen3": Qwen3Config(**COMMON, rope_parameters={**YARN, "rope_theta": 900.0}, rms_norm_eps=1e-5, tie_word_embeddings=True),
    "mistral": MistralConfig(**COMMON, rope_theta=800.0, sliding_window=4, rms_norm_eps=1e-5, tie_word_embeddings=False),
    "gemma2": Gemma2Config(**{**COMMON, "num_hidden_layers": 3}, sliding_window=3, query_pre_attn_scalar=10,
                           attn_logit_softcapping=1.5, final_logit_softcapping=4.0, rms_norm_eps=1e-5),
    "gemma3": Gemma3TextConfig(**COMMON, sliding_window=3, query_pre_attn_scalar=10, final_logit_softcapping=4.0,
                               layer_types=["sliding_attention", "full_attention"],
                               rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 900.0},
                                                "sliding_attention": {"rope_type": "default", "rope_theta": 70.0}}),
    "vaultgemma": VaultGemmaConfig(**COMMON, layer_types=["full_attention"] * 2,
                                   query_pre_attn_scalar=10, attn_logit_softcapping=1.5, final_logit_softcapping=4.0, rms_norm_eps=1e-5),
    "olmo2": Olmo2Config(**COMMON, rope_theta=800.0, rms_norm_eps=1e-5, tie_word_embeddings=False),
    "granite": GraniteConfig(**COMMON, rope_theta=700.0, rms_norm_eps=1e-4, embedding_multiplier=3.0, attention_multiplier=0.3,
                             residual_multiplier=0.6, logits_scaling=2.0, tie_word_embeddings=True),
    "smollm3": SmolLM3Config(**{**COMMON, "num_hidden_layers": 3}, rope_theta=600.0, rms_norm_eps=1e-5, no_rope_layers=[1, 0, 1],
                             mlp_bias=True),
    "phi3": Phi3Config(**COMMON, rope_theta=600.0, sliding_window=5, rms_norm_eps=1e-4),
}


def adapted(name, shape):
    return len(shape) == 2 and name.endswith(("q_proj.weight", "v_proj.weight", "qkv_proj.weight", "gate_up_proj.weight"))


def adapters(model):
    """An A of shape [RANK, d_in] and a B of shape [d_out, RANK] for each matrix, by a rule that a test repeats."""
    found = {}
    for name, matrix in model.named_parameters():
        if adapted(name, matrix.shape):
            d_out, d_in = matrix.shape
            a = torch.sin(torch.arange(RANK * d_in, dtype=torch.float64) * 1.3 + 0.2).reshape(RANK, d_in) * 0.3
            b = torch.cos(torch.arange(d_out * RANK, dtype=torch.float64) * 0.7 + 0.1).reshape(d_out, RANK) * 0.3
            module = name.removesuffix(".weight")
            found[f"{module}.lora_A.weight"], found[f"{module}.lora_B.weight"] = a, b
    return found


def merged(base, low_rank):
    weights = dict(base)
    for name in low_rank:
        if name.endswith(".lora_A.weight"):
            module = name.removesuffix(".lora_A.weight")
            weights[f"{module}.weight"] = base[f"{module}.weight"] + ALPHA / RANK * low_rank[f"{module}.lora_B.weight"] @ low_rank[name]
    return weights


def clipped(model, trained, weights_of):
    """The sum over texts of the gradients by `trained`, each clipped to the median norm: of each parameter three products."""
    gradients = []
    for text in TEXTS:
        leaves = {name: value.detach().clone().requires_grad_() for name, value in trained.items()}
        ids = torch.tensor([text])
        logits = functional_call(model, weights_of(leaves), (ids,), {"use_cache": False}, tie_weights=True).logits[0, :-1]
        loss = cross_entropy(logits, ids[0, 1:])
        of = torch.autograd.grad(loss, list(leaves.values()))
        norm = torch.sqrt(sum((one**2).sum() for one in of)).item()
        gradients.append((norm, dict(zip(leaves, of))))
    norms = [norm for norm, _ in gradients]
    bound = sorted(norms)[len(norms) // 2]
    total = {name: sum(min(1.0, bound / norm) * one[name] for norm, one in gradients) for name in trained}
    return {"l2_clip_norm": bound, "gradient_norms": norms, "products": {name: products(value) for name, value in total.items()}}


def products(value):
    """Products with three fixed vectors: enough to tell a gradient from another, in less space than the gradient."""
    flat = value.flatten()
    places = torch.arange(len(flat), dtype=torch.float64)
    return [(flat * torch.sin(places * rate + rate)).sum().item() for rate in [0.3, 1.1, 2.7]]


def generate(model, prompt, **settings):
    config = GenerationConfig(do_sample=False, max_new_tokens=CONTEXT - len(prompt), eos_token_id=END, pad_token_id=0, **settings)
    ids = torch.tensor([prompt])
    written = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)[0].tolist()[len(prompt):]
    return written[:written.index(END)] if END in written else written


def write(folder, config):
    torch.manual_seed(20261123)
    shutil.rmtree(folder, ignore_errors=True)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():  # away from the initial values, so that biases and gains take part
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
            if folder == "gemma3":  # the fixture of a checkpoint in 16 bits
                parameter.copy_(parameter.bfloat16().float())
    if folder == "gemma3":
        model.to(torch.bfloat16).save_pretrained(folder)
        model.to(torch.float32)
    else:
        # The fixture of a checkpoint in several files is Qwen 2.
        model.save_pretrained(folder, max_shard_size="3KB" if folder == "qwen2" else "5GB")
    os.remove(f"{folder}/generation_config.json")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    logits = model(input_ids=torch.tensor(TEXTS[:1]), use_cache=False).logits[0].tolist()
    # Without repetition a small model cannot write one token again and again.
    greedy = [generate(model, prompt, no_repeat_ngram_size=2) for prompt in PROMPTS]
    beams = [generate(model, prompt, num_beams=3, no_repeat_ngram_size=2) for prompt in PROMPTS]
    model = model.double()
    base = {name: value.detach() for name, value in model.named_parameters()}
    step = clipped(model, base, lambda leaves: leaves)
    lora = clipped(model, adapters(model), lambda leaves: merged(base, leaves))
    oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
    with open(f"{folder}/expected.json", "w", encoding="utf-8") as file:
        json.dump({"oracle": oracle, "texts": TEXTS, "logits": [[round(x, 5) for x in row] for row in logits],
                   "prompts": PROMPTS, "end": END, "greedy": greedy, "beams": beams, "step": step, "lora": lora}, file)
    print(folder, greedy, beams, [round(x, 2) for x in step["gradient_norms"]], max(abs(x) for row in logits for x in row))


for name in sys.argv[1:] or MODELS:
    write(name, MODELS[name])
