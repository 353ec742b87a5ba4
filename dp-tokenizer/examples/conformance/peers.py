"""The peers' side of `conformance.rs`: ids, offsets and decoded text of each line, by each model, to stdout.

First argument `udhr`: the lines of the declarations in the zip file of the second argument, as JSON, one a line.
Otherwise a job in JSON; the answers are little-endian u32: count, ids, offsets as pairs (in characters; SentencePiece's in
bytes), then the number of bytes of the decoded text and the text.
"""

import io
import json
import os
import sys
import zipfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"


def udhr(path):
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".txt"):
                for line in archive.read(name).decode("utf-8", "replace").splitlines():
                    print(json.dumps(line))


def bert(path):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece.from_file(path, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer


def gpt2(path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE.from_file(path, os.path.join(os.path.dirname(path), "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def tokenizers_of(kind, path):
    from tokenizers import Tokenizer

    return {"json": Tokenizer.from_file, "bert": bert, "gpt2": gpt2}[kind](path)


def through_tokenizers(kind, path):
    tokenizer = tokenizers_of(kind, path)
    # Files may ask for lengths, which `Tokenizer::encode` does not apply.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if kind == "bert":
        # BERT's own tools remove spaces in the whole text.
        from transformers import PreTrainedTokenizerBase

        def clean(text):
            return PreTrainedTokenizerBase.clean_up_tokenization(None, text)
    else:
        clean = str

    def batch(lines):
        encodings = tokenizer.encode_batch(lines, add_special_tokens=False)
        texts = map(clean, tokenizer.decode_batch([e.ids for e in encodings], skip_special_tokens=False))
        return [(e.ids, e.offsets, text) for e, text in zip(encodings, texts)]

    return batch


def through_transformers(folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)

    def batch(lines):
        found = tokenizer(lines, add_special_tokens=False, return_offsets_mapping=True)
        texts = tokenizer.batch_decode(found["input_ids"], clean_up_tokenization_spaces=False)
        return list(zip(found["input_ids"], found["offset_mapping"], texts))

    return batch


def through_sentencepiece(path):
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=path)

    def one(line):
        found = model.encode(line, return_type="proto")
        ids = [piece.id for piece in found.pieces]
        return ids, [(piece.begin, piece.end) for piece in found.pieces], model.decode(ids)

    return lambda lines: [one(line) for line in lines]


def answers(job):
    import numpy

    corpora = {}
    for name, path in job["corpora"]:
        with open(path, encoding="utf-8", newline="\n") as file:
            corpora[name] = [json.loads(line) for line in file]
    for case in job["cases"]:
        kind, path = case["kind"], case["path"]
        through = {"sentencepiece": through_sentencepiece, "transformers": through_transformers}.get(kind)
        batch = through(path) if through else through_tokenizers(kind, path)
        for name in case["corpora"]:
            lines = corpora[name]
            lines = lines[:: max(1, -(-len(lines) // case["most"]))]
            for start in range(0, len(lines), 500):
                out = io.BytesIO()
                for ids, offsets, text in batch(lines[start : start + 500]):
                    text = text.encode("utf-8", "surrogatepass")
                    numbers = numpy.empty(3 * len(ids) + 2, "<u4")
                    numbers[0], numbers[-1] = len(ids), len(text)
                    numbers[1 : len(ids) + 1] = ids
                    numbers[len(ids) + 1 : -1] = numpy.asarray(offsets, "<u4").reshape(-1)
                    out.write(numbers.tobytes())
                    out.write(text)
                sys.stdout.buffer.write(out.getvalue())


if sys.argv[1] == "udhr":
    udhr(sys.argv[2])
else:
    with open(sys.argv[1], encoding="utf-8") as file:
        answers(json.load(file))
    sys.stdout.buffer.flush()
