"""Writes a `tokenizer.json` of the structure of each well-known model to the folder of the first argument.

Second argument: a text to train the small vocabularies on. Further arguments name the models; without them, all. Normalizer, pre-tokenizer, decoder, post-processor and flags of
added tokens are those of the named models; the vocabulary has the size of the third argument (default 1500).
"""

import json
import os
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
LETTERS = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (
    f"{LETTERS}*{SMALL}+{ENGLISH}|{LETTERS}+{SMALL}*{ENGLISH}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = f"{LETTERS}*{SMALL}+|{LETTERS}+{SMALL}*" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def split(regex, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(regex), behavior, invert)


def byte_level(regex=True, prefix=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def special(*names, **flags):
    return [AddedToken(name, special=True, normalized=flags.get("normalized", False), **{k: v for k, v in flags.items() if k != "normalized"}) for name in names]


class Maker:
    def __init__(self, folder, lines, size, only):
        self.folder, self.lines, self.size, self.only = folder, lines, size, only

    def skips(self, name):
        return self.only and name not in self.only

    def write(self, name, tokenizer, change=None):
        file = json.loads(tokenizer.to_str())
        if change:
            change(file)
        path = os.path.join(self.folder, name + ".json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(file, out, ensure_ascii=False, separators=(",", ":"))
        Tokenizer.from_file(path)

    def bpe(self, pre, normalizer=None, alphabet=True, **options):
        model = {key: options.pop(key) for key in ["unk_token", "end_of_word_suffix", "continuing_subword_prefix", "fuse_unk", "byte_fallback", "ignore_merges"] if key in options}
        tokenizer = Tokenizer(models.BPE(**model))
        if normalizer:
            tokenizer.normalizer = normalizer
        if pre:
            tokenizer.pre_tokenizer = pre
        affixes = {key: model[key] for key in ["end_of_word_suffix", "continuing_subword_prefix"] if key in model}
        trainer = trainers.BpeTrainer(
            vocab_size=self.size,
            special_tokens=options.pop("first", []),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [],
            limit_alphabet=600,
            show_progress=False,
            **affixes,
        )
        tokenizer.train_from_iterator(self.lines, trainer)
        return tokenizer

    def gpt(self, name, pre, normalizer=None, added=(), post=None, decoder=None, change=None, **options):
        if self.skips(name):
            return
        tokenizer = self.bpe(pre, normalizer, **options)
        tokenizer.decoder = decoder or decoders.ByteLevel()
        if added:
            tokenizer.add_tokens(list(added))
        if post:
            tokenizer.post_processor = post(tokenizer)
        self.write(name, tokenizer, change)

    def llama(self, name, normalizer, pre, decoder, added=(), change=None, cut=None):
        """Characters with byte fallback. Merges are learnt within words, as SentencePiece does, then used on whole texts."""
        if self.skips(name):
            return
        first = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
        trained = self.bpe(cut or pre_tokenizers.Metaspace(), None, alphabet=False, unk_token="<unk>", first=first)
        file = json.loads(trained.to_str())
        file["model"].update(byte_fallback=True, fuse_unk=True)
        file["added_tokens"] = file["added_tokens"][:3]
        tokenizer = Tokenizer.from_str(json.dumps(file))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        tokenizer.decoder = decoder
        tokenizer.post_processor = TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
        if added:
            tokenizer.add_tokens(list(added))
        self.write(name, tokenizer, change)

    def unigram(self, name, normalizer, pre, decoder, added=(), post=None, change=None, unk="<unk>", first=("<s>", "<pad>", "</s>", "<unk>"), bytes=False):
        if self.skips(name):
            return
        tokenizer = Tokenizer(models.Unigram())
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        tokenizer.decoder = decoder
        more = [f"<0x{byte:02X}>" for byte in range(256)] if bytes else []
        size = self.size // 2 + len(set("".join(self.lines)))
        trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=list(first) + more, unk_token=unk, show_progress=False)
        tokenizer.train_from_iterator(self.lines, trainer)
        file = json.loads(tokenizer.to_str())
        file["model"]["byte_fallback"] = bytes
        file["added_tokens"] = [token for token in file["added_tokens"] if not token["content"].startswith("<0x")]
        tokenizer = Tokenizer.from_str(json.dumps(file))
        if added:
            tokenizer.add_tokens(list(added))
        if post:
            tokenizer.post_processor = post(tokenizer)
        self.write(name, tokenizer, change)


def ends(first, last):
    def template(tokenizer):
        return TemplateProcessing(
            single=f"{first} $A {last}",
            pair=f"{first} $A {last} $B {last}",
            special_tokens=[(name, tokenizer.token_to_id(name)) for name in (first, last)],
        )

    return template


def precompiled():
    """SentencePiece's map of T5."""
    folder = os.environ.get("T5_FOLDER", "../shared/data/tokenizers/hf/t5-small")
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        normalizer = json.load(file)["normalizer"]
    return Tokenizer.from_str(json.dumps({"version": "1.0", "normalizer": normalizer, "model": {"type": "WordLevel", "vocab": {}, "unk_token": ""}})).normalizer


def make(maker):
    Sequence, N, P, D = pre_tokenizers.Sequence, normalizers, pre_tokenizers, decoders
    end = special("<|endoftext|>")
    maker.gpt("gpt2", byte_level(), added=end)
    maker.gpt("phi2", byte_level(), added=end + [AddedToken(" " * n, normalized=False) for n in range(31, 1, -1)] + [AddedToken("\t" * n) for n in range(9, 1, -1)])
    maker.gpt("roberta", byte_level(), added=special("<s>", "<pad>", "</s>", "<unk>") + special("<mask>", lstrip=True),
              post=lambda t: __import__("tokenizers").processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")), trim_offsets=True, add_prefix_space=False))
    maker.gpt("llama3", Sequence([split(CL100K), byte_level(False)]), added=special("<|begin_of_text|>", "<|eot_id|>"), ignore_merges=True,
              post=lambda t: __import__("tokenizers").processors.Sequence([__import__("tokenizers").processors.ByteLevel(trim_offsets=True), TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", t.token_to_id("<|begin_of_text|>"))])]))
    maker.gpt("gpt4", Sequence([split(CL100K, "removed", True), byte_level(False)]), added=end)
    maker.gpt("gpt4o", Sequence([split(O200K, "removed", True), byte_level(False)]), added=end)
    maker.gpt("qwen2", Sequence([split(QWEN), byte_level(False)]), N.NFC(), added=special("<|im_start|>", "<|im_end|>") + [AddedToken("<think>", normalized=False)],
              post=lambda t: __import__("tokenizers").processors.ByteLevel(add_prefix_space=False, trim_offsets=False))
    maker.gpt("mistral-nemo", Sequence([split(TEKKEN), byte_level(False)]), added=special("<s>", "[INST]"), ignore_merges=True)
    maker.gpt("deepseek-v3", Sequence([split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK), byte_level(False)]), N.Sequence([]), added=special("<｜begin▁of▁sentence｜>") + [AddedToken("<｜User｜>", normalized=False)])
    maker.gpt("deepseek-coder", Sequence([split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-\ud7ff]+"), P.Digits(True), byte_level(False)]), N.Sequence([]), added=end)
    maker.gpt("starcoder", Sequence([P.Digits(True), byte_level()]), added=special("<fim_prefix>") + end)
    maker.gpt("smollm", Sequence([P.Digits(True), byte_level()]), added=special("<|im_start|>", "<repo_name>"))
    maker.gpt("falcon", Sequence([P.Punctuation("contiguous"), byte_level(), P.Digits(False), split("[0-9][0-9][0-9]")]), added=end)
    maker.gpt("kimi", Sequence([split(KIMI), byte_level(False)]), added=end)
    maker.gpt("chatglm4", Sequence([split(CL100K), byte_level(False)]), added=special("[gMASK]", "<sop>"), post=lambda t: TemplateProcessing(single="[gMASK] <sop> $A", special_tokens=[(n, t.token_to_id(n)) for n in ("[gMASK]", "<sop>")]))
    maker.gpt("modernbert", byte_level(), N.NFC(), added=special("[CLS]", "[SEP]", "[PAD]") + special("[MASK]", lstrip=True) + [AddedToken("|||IP_ADDRESS|||", normalized=True), AddedToken("   ", normalized=True)], post=ends("[CLS]", "[SEP]"))
    maker.gpt("whisper", byte_level(), added=end + special("<|startoftranscript|>", "<|en|>", "<|notimestamps|>"), post=lambda t: TemplateProcessing(single="<|startoftranscript|> <|notimestamps|> $A <|endoftext|>", special_tokens=[(n, t.token_to_id(n)) for n in ("<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>")]))
    maker.gpt("bloom", Sequence([split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), byte_level(False)]), added=special("<unk>", "<s>"))
    maker.gpt("clip", Sequence([split(CLIP, "removed", True), byte_level()]), N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()]), end_of_word_suffix="</w>", unk_token="<|endoftext|>", first=["<|endoftext|>", "<|startoftext|>"] + [c + "</w>" for c in sorted(P.ByteLevel.alphabet())], added=[],
              post=lambda t: __import__("tokenizers").processors.RobertaProcessing(("<|endoftext|>", 0), ("<|startoftext|>", 1), trim_offsets=False, add_prefix_space=False),
              change=lambda f: f.update(added_tokens=f["added_tokens"][:2]))
    maker.gpt("gpt1", P.BertPreTokenizer(), N.BertNormalizer(), alphabet=False, end_of_word_suffix="</w>", unk_token="<unk>", first=["<unk>"], decoder=D.BPEDecoder())
    maker.gpt("prefixed", P.Whitespace(), N.Lowercase(), alphabet=False, continuing_subword_prefix="##", unk_token="<unk>", first=["<unk>"], decoder=D.WordPiece())
    def normalizes_bytes(file):
        file["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "ByteLevel"}]}
        file["pre_tokenizer"] = None

    maker.gpt("byte-normalizer", byte_level(), added=end, change=normalizes_bytes)
    marks = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    fallback = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    maker.llama("llama2", marks, None, fallback)
    maker.llama("mistral", None, P.Metaspace("▁", "first", False), fallback, added=special("[INST]", "[/INST]"))
    maker.llama("phi3", marks, None, fallback, added=special("<|user|>", "<|end|>", rstrip=True) + [AddedToken("</s>", rstrip=True, normalized=False)])
    maker.llama("llama2-metaspace-always", None, P.Metaspace("▁", "always", False), D.Sequence([D.Metaspace("▁", "always"), D.ByteFallback(), D.Fuse()]))
    maker.llama("gemma", N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"), D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]), added=special("<bos>", "<start_of_turn>") + [AddedToken("\n\n", normalized=False), AddedToken("▁▁", normalized=False)])
    maker.llama("gemma3-without-split", N.Replace(" ", "▁"), None, D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]), cut=P.Split(" ", "merged_with_next"))
    nmt = precompiled()
    space = Sequence([P.WhitespaceSplit(), P.Metaspace()])
    maker.unigram("xlm-r", nmt, space, D.Metaspace(), added=special("<mask>", lstrip=True), post=ends("<s>", "</s>"))
    maker.unigram("mt5", nmt, space, D.Metaspace(), post=lambda t: TemplateProcessing(single="$A </s>", special_tokens=[("</s>", t.token_to_id("</s>"))]))
    maker.unigram("albert", N.Sequence([N.Replace("``", '"'), N.Replace("''", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), nmt]), space, D.Metaspace(), added=special("[CLS]", "[SEP]") + special("[MASK]", lstrip=True), post=ends("[CLS]", "[SEP]"))
    maker.unigram("deberta-v3", N.Sequence([N.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), N.NFC(), N.Strip(True, True), nmt]), P.Metaspace(), D.Metaspace(), added=special("[CLS]", "[SEP]") + [AddedToken("[MASK]", special=True)], post=ends("[CLS]", "[SEP]"))
    maker.unigram("nllb", N.Sequence([nmt, N.Strip(False, True), N.Replace(Regex(" {2,}"), "▁")]), P.Metaspace(), D.Metaspace(), added=special("eng_Latn", "fra_Latn") + special("<mask>", lstrip=True), post=ends("eng_Latn", "</s>"))
    maker.unigram("nmt", N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(" {2,}"), " ")]), P.Metaspace(), D.Metaspace())
    maker.unigram("t5-bytes", N.Sequence([N.Nmt(), N.NFKC()]), P.Metaspace("▁", "never"), D.Sequence([D.Metaspace("▁", "never"), D.ByteFallback(), D.Fuse()]), bytes=True)
    maker.unigram("japanese-unigram", N.NFKC(), Sequence([P.UnicodeScripts(), P.Punctuation("merged_with_next"), P.Digits(False), P.Metaspace("▁", "first")]), D.Metaspace("▁", "first"))
    if maker.only:
        return
    wordpiece = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    wordpiece.normalizer = N.Sequence([N.NFD(), N.Lowercase(), N.StripAccents()])
    wordpiece.pre_tokenizer = Sequence([P.Whitespace(), P.Punctuation("merged_with_previous")])
    wordpiece.decoder = D.WordPiece()
    wordpiece.train_from_iterator(maker.lines, trainers.WordPieceTrainer(vocab_size=maker.size, limit_alphabet=400, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    wordpiece.add_tokens([AddedToken("the doctor", single_word=True, normalized=True), AddedToken("Ubuntu", single_word=True, lstrip=True, rstrip=True)])
    wordpiece.post_processor = __import__("tokenizers").processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    maker.write("wordpiece", wordpiece)
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = Sequence([P.CharDelimiterSplit(" "), P.Punctuation("removed")])
    words.train_from_iterator(maker.lines, trainers.WordLevelTrainer(vocab_size=maker.size, special_tokens=["<unk>"], show_progress=False))
    maker.write("word-level", words)


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        lines = [line[:400] for line in file.read().splitlines()]
    os.makedirs(sys.argv[1], exist_ok=True)
    make(Maker(sys.argv[1], lines, int(sys.argv[3]) if len(sys.argv) > 3 else 1500, sys.argv[4:]))
