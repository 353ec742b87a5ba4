"""Writes tokenizer_keys.json: what transformers makes of texts when one key of a tokenizer_config.json is changed.

Changed are all keys that transformers writes for a family's tokenizer, the parameters of its class, and those that any tokenizer
knows. Each is left out, set to null, to values of its kind, and to some of another kind. What follows is one of: the same as without
the change; other ids, texts, special tokens or padding; or a refusal.

Run as `python make_tokenizer_keys.py [FILE]` in this folder. Takes about a minute on one core.
"""

import inspect
import json
import os
import platform
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

CORPUS = ["what the model reads", "The café's 2 naïve DOGS!", "hello , world .", "a special word and more words"] * 3
TEXTS = ["what the model reads", " The café's 2 naïve  DOGS!", "hello {eos}world , more . do n't", "Ünïcode 中文 a{mask} b"]


def byte_level(unk=None, special=("<|endoftext|>", "<|im_end|>")):
    raw = tokenizers.Tokenizer(models.BPE(unk_token=unk))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=320, special_tokens=list(special), initial_alphabet=alphabet))
    return raw


def merges_of(raw):
    model = json.loads(raw.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(merge) for merge in model["merges"]]}


def marked(special):
    raw = tokenizers.Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    raw.normalizer = normalizers.Replace(" ", "▁")
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    raw.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=340, special_tokens=[*special, *bytes_]))
    return raw


def pieces(special, extra=()):
    raw = tokenizers.Tokenizer(models.Unigram())
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=60, special_tokens=[*special], unk_token="<unk>"))
    vocab = [tuple(piece) for piece in json.loads(raw.to_str())["model"]["vocab"]]
    return [*vocab, *((name, 0.0) for name in extra)]


def words():
    raw = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(lowercase=False)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    lower = [text.lower() for text in CORPUS]
    raw.train_from_iterator(CORPUS + lower, trainers.WordPieceTrainer(vocab_size=160, special_tokens=special))
    return json.loads(raw.to_str())["model"]["vocab"]


def llama_3():
    raw = byte_level(special=("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|pad|>"))
    begin = "<|begin_of_text|>"
    raw.post_processor = tokenizers.processors.TemplateProcessing(f"{begin} $A", f"{begin} $A {begin}:1 $B:1", [(begin, 0)])
    raw.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=begin, eos_token="<|end_of_text|>", pad_token="<|pad|>", padding_side="left",
        clean_up_tokenization_spaces=True, model_input_names=["input_ids", "attention_mask"])


FAMILIES = {
    "gpt2": lambda: transformers.GPT2Tokenizer(**merges_of(byte_level())),
    "qwen2": lambda: transformers.Qwen2Tokenizer(**merges_of(byte_level()), eos_token="<|im_end|>"),
    "gpt_neox": lambda: transformers.GPTNeoXTokenizer(**merges_of(byte_level())),
    "roberta": lambda: transformers.RobertaTokenizer(**merges_of(byte_level(special=("<s>", "<pad>", "</s>", "<unk>", "<mask>")))),
    "llama": lambda: transformers.LlamaTokenizer(**merges_of(marked(("<unk>", "<s>", "</s>"))), add_bos_token=True, legacy=False),
    "gemma": lambda: transformers.GemmaTokenizer(**merges_of(marked(("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")))),
    "bert": lambda: transformers.BertTokenizer(vocab=words()),
    "t5": lambda: transformers.T5Tokenizer(vocab=pieces(("<pad>", "</s>", "<unk>"), [f"<extra_id_{at}>" for at in range(4)]), extra_ids=4),
    "xlm-roberta": lambda: transformers.XLMRobertaTokenizer(vocab=pieces(("<s>", "<pad>", "</s>", "<unk>"), ["<mask>"])),
    "llama3": llama_3,
}
MODEL_TYPES = {"llama3": "llama"}
ROLES = ["bos", "eos", "pad", "unk", "cls", "sep", "mask"]
OTHERS = [True, False, 0, 3, "nonsense", ["nonsense"], {}]
# Keys that any tokenizer knows.
GENERIC = {
    "add_bos_token": False, "add_eos_token": False, "add_prefix_space": False, "legacy": False, "clean_up_tokenization_spaces": False,
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": False, "split_special_tokens": False, "do_lower_case": False,
    "strip_accents": False, "tokenize_chinese_chars": False, "model_max_length": 8, "padding_side": "right", "truncation_side": "right",
    "additional_special_tokens": [], "extra_special_tokens": {}, "added_tokens_decoder": {}, "spaces_between_special_tokens": False,
    "use_default_system_prompt": False, "sp_model_kwargs": {}, "chat_template": None, "tokenizer_file": None, "name_or_path": "x",
    "model_input_names": ["input_ids"], "errors": "replace", "trim_offsets": True, "do_basic_tokenize": True, "never_split": None,
    "unk_id": 0, "max_length": 4, "stride": 0, "truncation_strategy": "longest_first", "pad_to_multiple_of": None, "pad_token_type_id": 0,
    "from_slow": None, "use_fast": True, "auto_map": None, "is_local": True, "backend": "tokenizers", "tokenizer_class": "x",
    **{f"{role}_token": None for role in ROLES},
}
SPECIAL = {
    "tokenizer_class": ["PreTrainedTokenizerFast", "TokenizersBackend", "GPT2Tokenizer", "GPT2TokenizerFast", "LlamaTokenizerFast", "BertTokenizer",
                        "T5Tokenizer", "Qwen2Tokenizer", "RobertaTokenizer", "GemmaTokenizer"],
    "padding_side": ["left", "right"],
    "truncation_side": ["left"],
    "model_max_length": [2, 1e30],
    "added_tokens_decoder": [{"0": {"content": "word", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}},
                             {"9999": {"content": "word", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False,
                                       "special": False}}],
    "additional_special_tokens": [["word"], ["the"]],
    "extra_special_tokens": [["word"], {"image_token": "word"}],
    "chat_template": ["{{ messages[0].content }}"],
    **{f"{role}_token": ["word", "the", {"content": "the", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False,
                                         "__type": "AddedToken"}] for role in ROLES},
}
# What transformers writes of itself, and what names files.
LEFT_OUT = {"transformers_version", "tokenizer_file", "name_or_path", "vocab_file", "merges_file", "vocab", "merges", "tokenizer_object"}


def read(folder, config, names):
    """What the tokenizer does; None if transformers refuses it."""
    with open(f"{folder}/tokenizer_config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    try:
        own = AutoTokenizer.from_pretrained(folder)
        ids = [own(text.format(**names)).input_ids for text in TEXTS]
        decoded = [own.decode(row, skip_special_tokens=True) for row in ids]
        roles = {role: getattr(own, f"{role}_token_id") for role in ROLES}
        return {"ids": ids, "decoded": decoded, "roles": roles, "padding_side": own.padding_side}
    except Exception:  # the user sees any
        return None


def changes(key, value, names):
    yield None
    yield from SPECIAL.get(key, [])
    if key.endswith("_token"):
        yield from names.values()
    yield from OTHERS
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {other: kept for other, kept in value.items() if other != name}
            if isinstance(inner, dict):
                for field, flag in inner.items():
                    if isinstance(flag, bool):
                        yield {**value, name: {**inner, field: not flag}}


def record(name, folder):
    FAMILIES[name]().save_pretrained(folder)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump({"model_type": MODEL_TYPES.get(name, name)}, file)
    with open(f"{folder}/tokenizer_config.json", encoding="utf-8") as file:
        config = json.load(file)
    with open(f"{folder}/tokenizer.json", encoding="utf-8") as file:
        tokenizer = json.load(file)
    config.pop("transformers_version", None)
    own = AutoTokenizer.from_pretrained(folder)
    names = {"eos": own.eos_token or own.sep_token, "mask": own.mask_token or own.eos_token}
    usual = read(folder, config, names)
    parameters = inspect.signature(type(own).__init__).parameters.values()
    of_class = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
    known = {**GENERIC, **of_class, **config}
    written = []
    for key, value in sorted(known.items()):
        if key in LEFT_OUT or key.startswith("_"):
            continue
        without = {other: kept for other, kept in config.items() if other != key}
        seen = {json.dumps(config[key])} if key in config else set()
        for change in ([()] if key in config else []) + [(value,) for value in changes(key, value, names)]:
            if change and json.dumps(change[0]) in seen:
                continue
            seen.update(json.dumps(one) for one in change)
            found = read(folder, {**without, key: change[0]} if change else without, names)
            outcome = "refused" if found is None else "same" if found == usual else {part: found[part] for part in found if found[part] != usual[part]}
            written.append([key, outcome, *change])
    print(name, len({key for key, *_ in written}), "keys", len(written), "changes", file=sys.stderr, flush=True)
    texts = [text.format(**names) for text in TEXTS]
    return {"tokenizer": tokenizer, "config": config, "texts": texts, "usual": usual, "changes": written}


def main():
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    path = (sys.argv[1:] or ["tokenizer_keys.json"])[0]
    oracle = f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, python {platform.python_version()}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"oracle": oracle})[:-1] + ',\n"files": {\n')
        for at, name in enumerate(FAMILIES):
            with tempfile.TemporaryDirectory() as folder:
                found = record(name, folder)
            file.write((",\n" if at else "") + f"{json.dumps(name)}: {json.dumps(found, separators=(',', ':'), ensure_ascii=False)}")
        file.write("\n}}\n")


if __name__ == "__main__":
    main()
