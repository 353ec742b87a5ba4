"""Writes generation_keys.json: what transformers generates when one key of a checkpoint's generation_config.json is changed.

Changed are all keys that transformers' class knows, in a file that takes the most likely token, one that draws, and one that
searches with beams. Each key is left out, set to null, to values of its kind, and to some of another kind. What follows is one of:
the same as without the change; another text, or another distribution of the first token if tokens are drawn; or a refusal.

Run as `python make_generation_keys.py [FILE]` in this folder. Takes about three minutes on one core.
"""

import copy
import json
import os
import platform
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"  # some settings load programs from the hub

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig

MODELS = "../../../network/tests/vectors"
MOST = 6
# Its last two tokens stand there before.
PROMPT = [5, 17, 22, 9, 5, 17]
DECODERS = ["gpt2_tiny", "llama_tiny"]
ENCODER_DECODERS = ["t5_tiny", "bart_tiny"]

BASES = {
    "greedy": {},
    "drawn": {"do_sample": True, "temperature": 0.7, "top_k": 12, "top_p": 0.95},
    "beams": {"num_beams": 3, "length_penalty": 0.5},
}
# Values of any kind.
OTHERS = [True, False, 0, 1, 2, 0.5, 1.5, -1, "nonsense", [1], [[3]], {}]
SPECIAL = {
    "temperature": [0.3, 1.0, 2.0],
    "top_k": [1, 3, 50, 1000],
    "top_p": [0.0, 0.3, 0.9, 1.0],
    "min_p": [0.0, 0.05, 0.5, 1.0],
    "typical_p": [0.2, 1.0],
    "top_h": [0.3],
    "epsilon_cutoff": [0.0, 0.05],
    "eta_cutoff": [0.0, 0.05],
    "repetition_penalty": [1.0, 0.5, 1.3, 4.0],
    "encoder_repetition_penalty": [1.0, 1.5],
    "no_repeat_ngram_size": [3],
    "encoder_no_repeat_ngram_size": [3],
    "num_beams": [4],
    "length_penalty": [0.0, 1.0, 2.0, -1.0],
    "early_stopping": ["never"],
    "min_length": [3, 9],
    "min_new_tokens": [4],
    "max_length": [3, 20],
    "max_new_tokens": [3, 20],
    "bad_words_ids": [[[5], [17]], [[5, 17]]],
    "sequence_bias": [[[[5], 3.0]], [[[17], -9.0]]],
    "suppress_tokens": [[5, 17, 22], []],
    "begin_suppress_tokens": [[5, 17, 22], list(range(0, 23, 2)), []],
    "exponential_decay_length_penalty": [[1, 2.0]],
    "guidance_scale": [1.0, 1.5],
    "watermarking_config": [{"greenlist_ratio": 0.25, "bias": 2.0}],
    "eos_token_id": [[3, 9], [22, 5], 17],
    "forced_eos_token_id": [9],
    "forced_bos_token_id": [9],
    "decoder_start_token_id": [3],
    "cache_implementation": ["static", "dynamic", "offloaded"],
    "num_return_sequences": [3],
}
# A key that needs a tokenizer, one that ends texts by the clock, and what transformers writes of itself.
LEFT_OUT = {"stop_strings", "max_time", "transformers_version", "compile_config", "use_mtp"}


def generated(model, config, folder):
    """The text, or the distribution of the first token; None if transformers refuses."""
    with open(f"{folder}/generation_config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    model = copy.deepcopy(model)  # some settings stay with the model
    try:
        model.generation_config = GenerationConfig.from_pretrained(folder)
        torch.manual_seed(0)
        ids = torch.tensor([PROMPT])
        output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=MOST, return_dict_in_generate=True,
                                output_scores=True)
        draws = bool(model.generation_config.do_sample)
    except Exception:  # the user sees any
        return None
    if draws:
        return {"first": [round(p, 4) for p in output.scores[0][0].softmax(-1).tolist()]}
    text = output.sequences[0].tolist()
    text = text[1:] if model.config.is_encoder_decoder else text[len(PROMPT):]
    return {"text": text}


def of_run(config, own):
    """The file of a run from this checkpoint: its own end token ends texts, too."""
    ends = config.get("eos_token_id")
    ends = ends if isinstance(ends, list) else [ends] if isinstance(ends, int) else []
    return {**config, "eos_token_id": [own["eos_token_id"], *ends]}


def changes(key, value):
    yield None
    if key == "use_cache":  # true and false differ in time; other values break transformers
        yield from [True, False]
        return
    yield from SPECIAL.get(key, [])
    yield from OTHERS
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield 2 * value


def record(name, folder):
    auto = AutoModelForSeq2SeqLM if name in ENCODER_DECODERS else AutoModelForCausalLM
    model = auto.from_pretrained(f"{MODELS}/{name}", dtype=torch.float32).eval()
    own = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": model.config.vocab_size - 1}
    if name in ENCODER_DECODERS:
        own["decoder_start_token_id"] = 0
    # A later token of the greedy text ends texts.
    text = generated(model, own, folder)["text"]
    own["eos_token_id"] = next(token for at, token in enumerate(text) if at > 1 and token not in text[:at] or at == MOST - 1)
    bases = {}
    for kind, base in BASES.items():
        config = {**own, **base}
        usual = generated(model, config, folder)
        keys = sorted({key for key in vars(GenerationConfig()) if not key.startswith("_")} - LEFT_OUT)
        written = []
        for key in keys:
            without = {other: value for other, value in config.items() if other != key}
            changed = [{**without, key: value} for value in changes(key, config.get(key))]
            for config_of_change in ([without] if key in config else []) + changed:
                found = generated(model, of_run(config_of_change, own), folder)
                outcome = "refused" if found is None else "same" if found == usual else found
                written.append([key, outcome, *([config_of_change[key]] if key in config_of_change else [])])
        bases[kind] = {"config": config, "usual": usual, "changes": written}
        print(name, kind, len(keys), "keys", len(written), "changes", file=sys.stderr, flush=True)
    return {"own": own, "vocab_size": model.config.vocab_size, "bases": bases}


def main():
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    path = (sys.argv[1:] or ["generation_keys.json"])[0]
    oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
    with tempfile.TemporaryDirectory() as folder:
        models = {name: record(name, folder) for name in DECODERS + ENCODER_DECODERS}
    with open(path, "w", encoding="utf-8") as file:
        head = {"oracle": oracle, "most": MOST, "prompt": PROMPT}
        file.write(json.dumps(head)[:-1] + ',\n"models": {\n')
        file.write(",\n".join(f"{json.dumps(name)}: {json.dumps(model, separators=(',', ':'))}" for name, model in models.items()))
        file.write("\n}}\n")


if __name__ == "__main__":
    main()
