"""Writes texts.json: small tokenizers with the settings beside them, and the ids that transformers gives a text for a model.

Run as `python make_texts.py` in this folder; the versions used are written to the file.
"""

import json
import os
import platform
import tempfile

import tokenizers
import transformers
from transformers import AutoTokenizer

TEXT = "what the model reads"
WORDS = ["<unk>", "<s>", "</s>", "<|end_of_text|>", "<|begin_of_text|>", "<|pad|>", "[CLS]", "[SEP]", *TEXT.split()]
SPECIAL = WORDS[:8]


def template(first, last=()):
    def tokens(names, kind):
        return [{"SpecialToken": {"id": name, "type_id": kind}} for name in names]

    def around(kind, name):
        return [*tokens(first, kind), {"Sequence": {"id": name, "type_id": kind}}, *tokens(last, kind)]

    ids = {name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]} for name in [*first, *last]}
    return {"type": "TemplateProcessing", "single": around(0, "A"), "pair": around(0, "A") + around(1, "B"), "special_tokens": ids}


CASES = {
    "Llama 2": (template(["<s>"]), {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True}),
    "Llama 3": (template(["<|begin_of_text|>"]), {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>", "pad_token": "<|pad|>",
                                                  "padding_side": "left"}),
    "OPT": (template(["</s>"]), {"bos_token": "</s>", "eos_token": "</s>"}),
    "Qwen": (None, {"eos_token": "<|end_of_text|>", "pad_token": "<|end_of_text|>"}),
    "begin token that no text has": (None, {"bos_token": "<s>", "eos_token": {"content": "</s>", "__type": "AddedToken"},
                                            "add_bos_token": True}),
    "no settings": (None, {}),
}


def case(name):
    processor, config = CASES[name]
    options = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": WORDS.index(token), "content": token, **options} for token in SPECIAL],
        "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": processor, "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: at for at, word in enumerate(WORDS)}, "unk_token": "<unk>"},
    }
    with tempfile.TemporaryDirectory() as folder:
        for file, content in [("tokenizer.json", tokenizer),
                              ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **config})]:
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                json.dump(content, out)
        read = AutoTokenizer.from_pretrained(folder)
        found = {"ids": read(TEXT).input_ids, "eos": read.eos_token_id, "bos": read.bos_token_id, "pad": read.pad_token_id,
                 "padding_side": read.padding_side}
    return {"name": name, "tokenizer": tokenizer, "config": config, **found}


oracle = f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, python {platform.python_version()}"
with open("texts.json", "w", encoding="utf-8") as file:
    json.dump({"oracle": oracle, "text": TEXT, "cases": [case(name) for name in CASES]}, file, indent=1)
    file.write("\n")
