"""Writes the folders of the families below beside this file: randomly initialised models of transformers, and of each
example its logits, its loss and its gradient norm; the sum of the gradients, each clipped to the median norm, from a loop
over the examples; the same for low-rank adapters; and generation_families.json with what the models generate.

Run as `python make_families.py [NAME ...]` in this folder; the versions used are written to each expected.json.
"""

import json
import os
import platform
import random
import sys

import torch
import transformers
from safetensors.torch import save_file
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig

ORACLE = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
VOCABULARY = 23
LONG = [5, 17, 17, 22, 6, 3, 12, 8, 9, 11, 2, 20]
MOST = 6  # tokens that are generated; the prompts have up to 5, the models read at least 12
SETTINGS = [dict(num_beams=1), dict(num_beams=3), dict(num_beams=2, length_penalty=2.0, no_repeat_ngram_size=2)]

CLASSIFIED = [{"input": tokens, "targets": target} for tokens, target in zip([LONG, [4], [7, 7, 4, 7]], [[2], [0], [1]])]
TAGGED = [
    {"input": LONG, "positions": [1, 2, 5, 6, 10], "targets": [0, 2, 2, 1, 0]},
    {"input": [4], "positions": [0], "targets": [1]},
    {"input": [7, 7, 4, 7], "positions": [0, 1, 3], "targets": [2, 1, 0]},
]
MASKED = [
    {"input": LONG, "positions": [1, 6], "targets": [0, 22]},
    {"input": [4], "positions": [0], "targets": [9]},
    {"input": [7, 7, 4, 7], "positions": [2], "targets": [7]},
]
CAUSAL = [{"input": text[:-1], "targets": text[1:]} for text in [LONG, [4, 9], [7, 7, 4, 7, 0]]]
WRITTEN = [
    {"input": LONG, "decoder_input": [0, 4, 4, 9], "targets": [4, 4, 9, 1]},
    {"input": [6, 5], "decoder_input": [0], "targets": [1]},
    {"input": [3, 2, 5], "decoder_input": [0, 19, 3, 3, 8, 21, 7, 2, 11], "targets": [19, 3, 3, 8, 21, 7, 2, 11, 1]},
]


def beyond(context):
    """A text that is longer than a window of attention, of which few logits are kept."""
    text = [(7 * at + at // 5) % VOCABULARY for at in range(context)]
    return [{"input": text, "targets": text[1:] + [3]}, {"input": [7, 7, 4, 7], "targets": [7, 4, 7, 0]}]


def loss_of(model, example, weights=None):
    tensors = {"input_ids": torch.tensor([example["input"]])}
    if "decoder_input" in example:
        tensors["decoder_input_ids"] = torch.tensor([example["decoder_input"]])
    output = functional_call(model, weights, (), tensors) if weights else model(**tensors)
    logits = output.logits[0]
    targets = torch.tensor(example["targets"])
    logits = logits[None] if logits.dim() == 1 else logits
    if "positions" in example:
        logits = logits[example["positions"]]
    return logits, cross_entropy(logits, targets)


def clipped_sum(gradients):
    """The median norm, and the sum of the gradients clipped to it."""
    norms = [torch.sqrt(sum((one**2).sum() for one in gradient.values())).item() for gradient in gradients]
    bound = sorted(norms)[len(norms) // 2]
    sums = {name: sum(min(1.0, bound / norm) * gradient[name] for norm, gradient in zip(norms, gradients))
            for name in gradients[0]}
    return norms, bound, {name: value.float().contiguous() for name, value in sums.items()}


def adapters(model, examples, targets):
    """The values of adapters beside the named matrices, and the clipped sum of their gradients."""
    rank, alpha = 2, 3.0
    frozen = {name: value.detach() for name, value in model.named_parameters()}
    modules = [name[: -len(".weight")] for name in frozen if any(name.endswith(f".{end}.weight") for end in targets)]
    values = {}
    for name in modules:
        d_out, d_in = frozen[f"{name}.weight"].shape
        values[f"{name}.lora_A.weight"] = 0.3 * torch.randn(rank, d_in).float()
        values[f"{name}.lora_B.weight"] = 0.3 * torch.randn(d_out, rank).float()
    gradients = []
    for example in examples:
        own = {name: value.double().requires_grad_() for name, value in values.items()}
        merged = {f"{name}.weight": frozen[f"{name}.weight"]
                  + alpha / rank * own[f"{name}.lora_B.weight"] @ own[f"{name}.lora_A.weight"] for name in modules}
        loss_of(model, example, merged)[1].backward()
        gradients.append({name: value.grad for name, value in own.items()})
    _, bound, sums = clipped_sum(gradients)
    settings = dict(rank=rank, alpha=alpha, targets=targets, l2_clip_norm=bound)
    tensors = {f"adapter.{name}": value for name, value in values.items()}
    return settings, tensors | {f"clipped.{name}": value for name, value in sums.items()}


def texts(name, model, start):
    """What the model generates. A token that the model writes ends a text."""
    draw = random.Random(name)
    lengths = [1, 5, 2, 256 if name == "gpt_neo_tiny" else 3]  # there more than a window
    prompts = [[draw.randrange(2, VOCABULARY) for _ in range(length)] for length in lengths]

    def generate(prompt, end, settings):
        config = GenerationConfig(do_sample=False, max_new_tokens=MOST, eos_token_id=end, pad_token_id=0,
                                  decoder_start_token_id=start, bos_token_id=None, forced_eos_token_id=None,
                                  forced_bos_token_id=None, **settings)
        model.generation_config = config
        ids = torch.tensor([prompt])
        output = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)[0].tolist()
        generated = output[1:] if model.config.is_encoder_decoder else output[len(prompt):]
        return generated[:generated.index(end)] if end in generated else generated

    free = [token for prompt in prompts for token in generate(prompt, VOCABULARY - 1, dict(num_beams=3))[1:]]
    end = min(sorted(set(free)), key=free.count)
    cases = [dict(end=end, settings=settings, texts=[generate(prompt, end, settings) for prompt in prompts])
             for settings in SETTINGS]
    return dict(prompts=prompts, cases=cases, start=start)


def write(name, kind, config, examples, lora=(), generates=False, kept=None, before=None):
    torch.manual_seed(20261123)
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():  # away from the initial values, so that gains and biases take part
        for parameter in filter(lambda p: p.requires_grad, model.parameters()):  # Marian's sinusoids are none
            parameter.add_(0.3 * torch.randn_like(parameter))
        if before:
            before(model)
    if os.path.exists(f"{name}/generation_config.json"):
        os.remove(f"{name}/generation_config.json")
    model.save_pretrained(name)
    if os.path.exists(f"{name}/generation_config.json"):
        os.remove(f"{name}/generation_config.json")
    found = texts(name, model, 0) if generates else None
    double = model.double()
    if kind == "MarianMTModel":  # transformers keeps it as it is; Marian trains it
        bias = double._buffers.pop("final_logits_bias")
        double.register_parameter("final_logits_bias", torch.nn.Parameter(bias))
    written, gradients = [], []
    for example in examples:
        double.zero_grad()
        logits, loss = loss_of(double, example)
        loss.backward()
        gradients.append({name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
                          for name, p in double.named_parameters() if p.requires_grad})
        at = list(range(len(logits))) if kept is None or len(logits) <= len(kept) else kept
        rows = [[round(x, 9) for x in logits[row].tolist()] for row in at]
        written.append(dict(example, logits_at=at, logits=rows, loss=loss.item()))
    norms, bound, tensors = clipped_sum(gradients)
    if kind.startswith("GPTNeoX") and "lm_head.weight" in tensors:  # as the file calls it
        tensors["embed_out.weight"] = tensors.pop("lm_head.weight")
    for example, norm in zip(written, norms):
        example["gradient_norm"] = norm
    expected = {"oracle": ORACLE, "dtype": "float64", "l2_clip_norm": bound, "examples": written}
    if lora:
        expected["lora"], more = adapters(double, examples, list(lora))
        tensors |= more
    save_file(tensors, f"{name}/clipped.safetensors")
    with open(f"{name}/expected.json", "w", encoding="utf-8") as file:
        json.dump(expected, file)
    return found


def config(kind, **fields):
    return getattr(transformers, kind)(vocab_size=VOCABULARY, **fields)


def roberta(**fields):
    return config("RobertaConfig", max_position_embeddings=14, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                  intermediate_size=12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, type_vocab_size=1,
                  layer_norm_eps=1e-5, pad_token_id=1, **fields)


def distilbert(**fields):
    return config("DistilBertConfig", max_position_embeddings=12, dim=8, n_layers=2, n_heads=2, hidden_dim=12, dropout=0.0,
                  attention_dropout=0.0, seq_classif_dropout=0.0, pad_token_id=None, **fields)


def electra(**fields):
    return config("ElectraConfig", max_position_embeddings=12, embedding_size=6, hidden_size=8, num_hidden_layers=2,
                  num_attention_heads=2, intermediate_size=12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                  pad_token_id=None, **fields)


def stablelm(**fields):
    return config("StableLmConfig", max_position_embeddings=12, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                  intermediate_size=12, **fields)


def mt5(**fields):
    return config("MT5Config", d_model=8, d_kv=6, d_ff=12, num_layers=2, num_decoder_layers=2, num_heads=3, dropout_rate=0.0,
                  decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, feed_forward_proj="gated-gelu", **fields)


def untied_head(model):
    model.lm_head.weight = torch.nn.Parameter(0.5 * torch.randn_like(model.lm_head.weight))
    model.config.tie_word_embeddings = False


def gpt_neox(hidden_size, layers, **fields):
    return config("GPTNeoXConfig", max_position_embeddings=12, hidden_size=hidden_size, num_hidden_layers=layers, num_attention_heads=2,
                  intermediate_size=12, hidden_dropout=0.0, attention_dropout=0.0, bos_token_id=0, eos_token_id=0, **fields)


# What Pythia does not set.
SEQUENTIAL = dict(use_parallel_residual=False, rotary_pct=0.5, rotary_emb_base=500.0, layer_norm_eps=1e-3)
PHI = dict(max_position_embeddings=12, hidden_size=20, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
           bos_token_id=0, eos_token_id=0, partial_rotary_factor=0.4)
GPTJ = dict(n_positions=12, n_embd=16, n_layer=2, n_head=2, n_inner=12, rotary_dim=6, bos_token_id=0, eos_token_id=0)
OPT = dict(max_position_embeddings=12, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, ffn_dim=12, dropout=0.0,
           word_embed_proj_dim=8, bos_token_id=0, eos_token_id=0, pad_token_id=None)
GPT_NEO = dict(max_position_embeddings=264, hidden_size=8, num_layers=2, num_heads=2, intermediate_size=12,
               attention_types=[[["global", "local"], 1]], bos_token_id=0, eos_token_id=0)


BART = dict(max_position_embeddings=12, d_model=8, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12, dropout=0.0, decoder_start_token_id=0,
            pad_token_id=1, bos_token_id=0, eos_token_id=0, forced_eos_token_id=None)
MARIAN = dict(BART, scale_embedding=True, activation_function="swish")
MBART = dict(BART, scale_embedding=True)
NO_TOKENS = dict(pad_token_id=None, bos_token_id=0, eos_token_id=0, cls_token_id=0, sep_token_id=0)
MODERNBERT = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, **NO_TOKENS)


def modernbert(context, **fields):
    return config("ModernBertConfig", max_position_embeddings=context, **MODERNBERT, **fields)


def biased_logits(model):
    model.final_logits_bias.add_(0.3 * torch.randn_like(model.final_logits_bias))


FAR = [{"input": [(7 * at + at // 5) % VOCABULARY for at in range(150)], "positions": [0, 80, 149], "targets": [3, 9, 4]},
       {"input": [7, 7, 4, 7], "positions": [2], "targets": [7]}]

MODELS = {
    "roberta_tiny": lambda n: write(n, "RobertaForMaskedLM", roberta(), MASKED, lora=["query", "dense"]),
    "roberta_classifier_tiny": lambda n: write(n, "RobertaForSequenceClassification", roberta(num_labels=3), CLASSIFIED),
    "roberta_tagger_tiny": lambda n: write(n, "RobertaForTokenClassification", roberta(num_labels=3), TAGGED),
    "distilbert_tiny": lambda n: write(n, "DistilBertForMaskedLM", distilbert(), MASKED, lora=["q_lin", "lin2"]),
    "distilbert_classifier_tiny":
        lambda n: write(n, "DistilBertForSequenceClassification", distilbert(num_labels=3), CLASSIFIED),
    "distilbert_tagger_tiny": lambda n: write(n, "DistilBertForTokenClassification", distilbert(num_labels=3), TAGGED),
    "electra_tiny": lambda n: write(n, "ElectraForMaskedLM", electra(), MASKED, lora=["query", "embeddings_project"]),
    "electra_classifier_tiny": lambda n: write(n, "ElectraForSequenceClassification", electra(num_labels=3), CLASSIFIED),
    "electra_tagger_tiny": lambda n: write(n, "ElectraForTokenClassification", electra(num_labels=3), TAGGED),
    "mt5_tiny": lambda n: write(n, "MT5ForConditionalGeneration", mt5(), WRITTEN, lora=["q", "wi_0"], generates=True,
                                before=untied_head),
    "gpt_neox_tiny": lambda n: write(n, "GPTNeoXForCausalLM", gpt_neox(32, 1), CAUSAL, lora=["query_key_value"], generates=True),
    "gpt_neox_tied_tiny":
        lambda n: write(n, "GPTNeoXForCausalLM", gpt_neox(16, 2, tie_word_embeddings=True, **SEQUENTIAL), CAUSAL, generates=True),
    "phi_tiny": lambda n: write(n, "PhiForCausalLM", config("PhiConfig", **PHI), CAUSAL, lora=["q_proj", "fc1"], generates=True),
    "stablelm_tiny": lambda n: write(n, "StableLmForCausalLM", stablelm(num_key_value_heads=2, use_qkv_bias=True), CAUSAL,
                                     lora=["k_proj", "gate_proj"], generates=True),
    "stablelm_parallel_tiny":
        lambda n: write(n, "StableLmForCausalLM", stablelm(num_key_value_heads=4, use_parallel_residual=True, layer_norm_eps=1e-3,
                                                           partial_rotary_factor=0.5, tie_word_embeddings=True), CAUSAL),
    "gptj_tiny": lambda n: write(n, "GPTJForCausalLM", config("GPTJConfig", **GPTJ), CAUSAL, lora=["q_proj", "fc_in"], generates=True),
    "opt_tiny": lambda n: write(n, "OPTForCausalLM", config("OPTConfig", **OPT), CAUSAL, lora=["v_proj", "fc2"], generates=True),
    "gpt_neo_tiny": lambda n: write(n, "GPTNeoForCausalLM", config("GPTNeoConfig", **GPT_NEO), beyond(262),
                                    lora=["q_proj", "c_fc"], generates=True, kept=[0, 100, 255, 256, 257, 261]),
    "bart_tiny": lambda n: write(n, "BartForConditionalGeneration", config("BartConfig", **BART), WRITTEN,
                                 lora=["q_proj", "fc1"], generates=True),
    "mbart_tiny": lambda n: write(n, "MBartForConditionalGeneration", config("MBartConfig", **MBART), WRITTEN,
                                  lora=["q_proj", "fc1"], generates=True),
    "marian_tiny": lambda n: write(n, "MarianMTModel", config("MarianConfig", **MARIAN), WRITTEN, lora=["v_proj", "fc2"],
                                   generates=True, before=biased_logits),
    "modernbert_tiny": lambda n: write(n, "ModernBertForMaskedLM", modernbert(160), FAR, lora=["Wqkv", "Wi", "dense"]),
    "modernbert_classifier_tiny":
        lambda n: write(n, "ModernBertForSequenceClassification", modernbert(12, num_labels=3), CLASSIFIED),
    "modernbert_tagger_tiny": lambda n: write(n, "ModernBertForTokenClassification", modernbert(12, num_labels=3), TAGGED),
}

if __name__ == "__main__":
    path = "generation_families.json"
    found = json.load(open(path, encoding="utf-8"))["models"] if os.path.exists(path) else {}
    for name in sys.argv[1:] or MODELS:
        generated = MODELS[name](name)
        if generated:
            found[name] = generated
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(oracle=ORACLE, most=MOST, models=dict(sorted(found.items()))), file)
