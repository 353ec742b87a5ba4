"""Writes keys.json: what transformers makes of each model below when one key of its config.json is changed.

Changed are all keys that the model's configuration class knows, with their defaults written out; those that every class knows;
and, by one value each, those of the other families. Each is left out, set to null, and set to several values of its type. What
follows is one of: the logits stay as they are; other logits, of which three rows at three tokens are kept; or a refusal, to which
weights that do not fit belong.

Run as `python make_keys.py [FILE]` in this folder. Takes about five minutes on one core.
"""

import json
import os
import platform
import resource
import shutil
import sys
import tempfile
import warnings

import torch
import transformers
from transformers import AutoConfig, PreTrainedConfig

LENGTH = 8  # half of the shortest context, so that a key may halve that
TEXT = [5, 17, 17, 22, 0, 3, 12, 8]
MASKED = [1, 4, 7]
WRITTEN = {"input": TEXT, "decoder_input": [0, 4, 4, 9]}


def far(length):
    """A text longer than a window of attention."""
    return [(7 * at + at // 5) % 23 for at in range(length)]


MODELS = {
    "gpt2_tiny": {"input": TEXT},
    "gpt2_classifier_tiny": {"input": TEXT},
    "gpt2_tagger_tiny": {"input": TEXT, "positions": MASKED},
    "t5_tiny": WRITTEN,
    "t5_v1_1_tiny": WRITTEN,
    "mt5_tiny": WRITTEN,
    "bert_tiny": {"input": TEXT, "positions": MASKED},
    "bert_classifier_tiny": {"input": TEXT},
    "roberta_tiny": {"input": TEXT, "positions": MASKED},
    "distilbert_tiny": {"input": TEXT, "positions": MASKED},
    "electra_tiny": {"input": TEXT, "positions": MASKED},
    "electra_classifier_tiny": {"input": TEXT},
    "gpt_neox_tiny": {"input": TEXT},
    "gpt_neox_tied_tiny": {"input": TEXT},
    "phi_tiny": {"input": TEXT},
    "stablelm_tiny": {"input": TEXT},
    "stablelm_parallel_tiny": {"input": TEXT},
    "gptj_tiny": {"input": TEXT},
    "opt_tiny": {"input": TEXT},
    "gpt_neo_tiny": {"input": far(262)},
    "bart_tiny": WRITTEN,
    "mbart_tiny": WRITTEN,
    "marian_tiny": WRITTEN,
    "modernbert_tiny": {"input": far(150), "positions": [0, 80, 149]},
    "modernbert_classifier_tiny": {"input": TEXT},
    "gemma_tiny": {"input": TEXT},
    "llama_tiny": {"input": TEXT},
    **{f"rms_decoders/{name}": {"input": TEXT} for name in
       ["gemma2", "gemma3", "gemma_linear", "granite", "llama3", "llama_biased", "mistral", "olmo2", "phi3", "qwen2", "qwen2_window",
        "qwen3", "smollm3", "vaultgemma"]},
}

ACTIVATIONS = ["gelu", "relu", "silu", "swish", "tanh", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "quick_gelu"]
SCALINGS = [
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 2.0},
    {"type": "linear", "factor": 2.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "yarn", "factor": 2.0},
    {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8},
    {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8, "beta_fast": 16.0, "beta_slow": 2.0},
    {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8, "mscale": 0.7, "mscale_all_dim": 0.9},
    {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8, "attention_factor": 1.5},
    {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8, "truncate": False},
    {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0, "original_max_position_embeddings": 8},
    {"rope_type": "longrope", "short_factor": [1.5], "long_factor": [2.0], "original_max_position_embeddings": 8},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5},
    {"rope_type": "nonsense"},
]
# Values that no type suggests. Names of keys that end so.
SPECIAL = {
    "hidden_act": ACTIVATIONS,
    "hidden_activation": ACTIVATIONS,
    "activation_function": ACTIVATIONS,
    "activation": ACTIVATIONS,
    "dense_act_fn": ACTIVATIONS,
    "classifier_activation": ACTIVATIONS,
    "feed_forward_proj": ["relu", "gated-gelu", "gated-silu", "gelu", "gelu_new", "silu", "tanh", "gated-relu", "gated-gelu_new", "geglu"],
    "classifier_pooling": ["cls", "mean"],
    "position_embedding_type": ["absolute", "relative_key", "relative_key_query", "rotary"],
    "problem_type": ["regression", "single_label_classification", "multi_label_classification"],
    "model_type": ["gpt2", "llama", "mistral", "qwen2", "gemma", "gemma2", "t5", "mt5", "bert", "roberta", "xlm-roberta", "nonsense"],
    "num_labels": [1, 2, 3],
    "pad_token_id": [0, 1, 2, 22, -1],
    "dtype": ["float16", "bfloat16", "float64"],
    "torch_dtype": ["float16", "bfloat16", "float64"],
    "no_rope_layers": [[1, 1, 1], [0, 0, 0], [0, 1, 1], [1, 0], [1, 0, 1, 0], [1, 2, 0]],
    "no_rope_layer_interval": [1, 2, 3],
    "embedding_size": [8, 6],
    "rotary_dim": [2, 4, 8, 16],
    "rope_theta": [20.0, 1e6, "10000"],
    "rotary_pct": [0.5, 1.0],
    "partial_rotary_factor": [0.25, 0.5, 1.0],
    "layer_types": [["full_attention", "full_attention"], ["sliding_attention", "sliding_attention"],
                    ["sliding_attention", "full_attention"], ["full_attention", "sliding_attention"], ["full_attention"],
                    ["chunked_attention", "full_attention"]],
    "attention_layers": [["global", "global"], ["local", "global"], ["local", "local"]],
    "attention_types": [[[["global"], 2]], [[["local", "global"], 1]], [[["local"], 1], [["global"], 1]]],
    "id2label": [{"0": "LABEL_0", "1": "LABEL_1"}, {"0": "a", "1": "b", "2": "c"}],
    "rope_scaling": SCALINGS + [dict(scaling, rope_theta=30.0) for scaling in SCALINGS[:2]],
    "rope_parameters": SCALINGS + [dict(scaling, rope_theta=30.0) for scaling in SCALINGS]
    + [dict(SCALINGS[0], rope_theta=30.0, partial_rotary_factor=0.5)]
    + [{"full_attention": dict(SCALINGS[0], rope_theta=30.0), "sliding_attention": dict(SCALINGS[at], rope_theta=40.0)} for at in [0, 1]]
    + [{"full_attention": dict(SCALINGS[1], rope_theta=30.0)}, {"sliding_attention": dict(SCALINGS[0], rope_theta=40.0)}],
}
# Not of a model: what transformers writes of itself.
OF_THE_FILE = {"transformers_version", "architectures", "_name_or_path"}
GENERIC = {
    "add_cross_attention": False, "is_decoder": False, "is_encoder_decoder": False, "tie_encoder_decoder": False,
    "tie_word_embeddings": True, "chunk_size_feed_forward": 0, "pruned_heads": {}, "cross_attention_hidden_size": None,
    "torchscript": False, "use_bfloat16": False, "output_attentions": False, "output_hidden_states": False, "return_dict": True,
    "torch_dtype": "float32", "quantization_config": None, "max_length": 20, "attn_implementation": None, "_attn_implementation": None,
    "experts_implementation": None, "text_config": None, "auto_map": None, "sliding_window_pattern": None, "rope_theta": None,
    "rope_scaling": None, "rope_parameters": None, "partial_rotary_factor": None, "n_ctx": None, "type_vocab_size": None,
}


AUTO = {
    "ForPreTraining": transformers.AutoModelForPreTraining,
    "ForSequenceClassification": transformers.AutoModelForSequenceClassification,
    "ForTokenClassification": transformers.AutoModelForTokenClassification,
    "ForMaskedLM": transformers.AutoModelForMaskedLM,
    "ForConditionalGeneration": transformers.AutoModelForSeq2SeqLM,
    "MTModel": transformers.AutoModelForSeq2SeqLM,
    "ForCausalLM": transformers.AutoModelForCausalLM,
    "LMHeadModel": transformers.AutoModelForCausalLM,
}


def loaded(folder, architecture, example):
    """The logits, or None if transformers refuses the folder, its weights do not fit or its logits are no numbers."""
    auto = next(auto for end, auto in AUTO.items() if architecture.endswith(end))
    try:
        model, report = auto.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        if report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"]:
            return None
        tensors = {"input_ids": torch.tensor([example["input"]])}
        if "decoder_input" in example:
            tensors["decoder_input_ids"] = torch.tensor([example["decoder_input"]])
        with torch.no_grad():
            output = model.eval()(**tensors, return_dict=True)
        logits = (output.prediction_logits if hasattr(output, "prediction_logits") else output.logits)[0]
        logits = logits[None] if logits.dim() == 1 else logits
        logits = logits[example["positions"]] if "positions" in example else logits
        return logits if logits.isfinite().all() else None
    except Exception:  # the user sees any
        return None


def kept(logits):
    """Three rows at three tokens."""
    rows, columns = ([0, count // 2, count - 1] for count in logits.shape)
    return [round(logits[row, column].item(), 6) for row in rows for column in columns]


def changes(key, value):
    """Other values for a key."""
    if key in SPECIAL:
        yield from SPECIAL[key]
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from [2 * value, value // 2, value + 1, 0, value + 0.5]
    elif isinstance(value, float):
        yield from [2 * value, value / 2, 0.0, -1.0, 1]
    elif isinstance(value, str):
        yield "nonsense"
    elif isinstance(value, list):
        yield from [value[::-1], value[:-1], []]
    elif isinstance(value, dict):
        yield {}
        for name, inner in value.items():
            yield {other: kept for other, kept in value.items() if other != name}
            yield from ({**value, name: change} for change in changes(name, inner))
    elif value is None:
        yield from [True, 1, 0.5, "nonsense", [1], {"nonsense": 1}]


def all_changes(config, others):
    """(key, value) of every change; without a value, the key is left out."""
    known = AutoConfig.from_pretrained(config["folder"])
    defaults = {**GENERIC, **PreTrainedConfig().to_dict(), **type(known)().to_dict(), **known.to_dict()}
    own = config["config"]
    renamed = {old: defaults.get(new) for old, new in type(known).attribute_map.items()}
    for key, value in sorted({**renamed, **defaults}.items()):
        if key in OF_THE_FILE:
            continue
        seen = {json.dumps(own.get(key))} if key in own else set()
        if key in own:
            yield (key,)
        for change in [None, value, *changes(key, value)]:
            if json.dumps(change) not in seen:
                seen.add(json.dumps(change))
                yield (key, change)
    for key, value in sorted(others.items()):
        if key not in defaults and key not in renamed:
            yield (key, next(changes(key, value), value))


def record(name, example, others):
    base = {"folder": name, "config": AutoConfig.from_pretrained(name).to_dict()}
    base["config"].pop("transformers_version")
    with open(f"{name}/config.json", encoding="utf-8") as file:
        architecture = json.load(file)["architectures"][0]
    with tempfile.TemporaryDirectory() as folder:
        for file in os.listdir(name):
            if file.startswith("model"):
                shutil.copy(f"{name}/{file}", folder)

        def logits(config):
            with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
                json.dump(config, file)
            return loaded(folder, architecture, example)

        usual, written = logits(base["config"]), []
        for key, *value in all_changes(base, others):
            config = {other: kept for other, kept in base["config"].items() if other != key}
            if value:
                config[key] = value[0]
            found = logits(config)
            is_usual = found is not None and found.shape == usual.shape and (found - usual).abs().max().item() < 1e-6
            outcome = "refused" if found is None else "same" if is_usual else kept(found)
            written.append([key, outcome, *value])
    print(name, len({key for key, *_ in written}), "keys", len(written), "changes", file=sys.stderr, flush=True)
    return {"example": example, "config": base["config"], "logits": kept(usual), "changes": written}


def main():
    # A size that is left out gets its usual value, with which some models are larger than this machine. They count as refused.
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    path, *names = sys.argv[1:] or ["keys.json"]
    others = {}
    for name in MODELS:
        others |= AutoConfig.from_pretrained(name).to_dict()
    others = {key: value for key, value in others.items() if key not in OF_THE_FILE}
    oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
    models = {name: record(name, MODELS[name], others) for name in names or MODELS}
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"oracle": oracle})[:-1] + ',\n"models": {\n')
        file.write(",\n".join(f"{json.dumps(name)}: {json.dumps(model, separators=(',', ':'))}" for name, model in models.items()))
        file.write("\n}}\n")


if __name__ == "__main__":
    main()
