"""Writes tokenizer.json and expected.json: BERTScores of the BERT in ../bert_tiny, by the authors' program.

python make.py    (needs bert-score, transformers and torch)
"""

import json
import shutil
import tempfile
from pathlib import Path

import bert_score
from bert_score import BERTScorer
from transformers import BertTokenizerFast

HERE = Path(__file__).parent
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the a cat dog sat on mat slept is was under chair it they ran away , . ! ?".split()
LETTERS = list("abcdefghijklmnopqr")
VOCABULARY = (SPECIAL + WORDS + ["##" + letter for letter in LETTERS] + LETTERS[1:])[:61]
PAIRS = [
    ("the cat sat on the mat .", "a cat was on the mat ."),
    ("the dog ran away !", "they slept under the chair ."),
    ("it is a dog", "it is a dog"),
    ("", "the cat slept"),
    ("the cat slept", ""),
    ("zzz the", "cats, dogs?"),
    ("the dog and the cat ran under the chair and slept on the mat , they slept .", "dog"),
]

# The method is gone from transformers 5; bert-score calls it for empty texts.
BertTokenizerFast.build_inputs_with_special_tokens = lambda self, ids: [self.cls_token_id, *ids, self.sep_token_id]

with tempfile.TemporaryDirectory() as folder:
    for name in ["config.json", "model.safetensors"]:
        shutil.copy(HERE / "../bert_tiny" / name, folder)
    vocabulary = Path(folder) / "vocab.txt"
    vocabulary.write_text("\n".join(VOCABULARY) + "\n")
    tokenizer = BertTokenizerFast(str(vocabulary), do_lower_case=True, model_max_length=16)
    tokenizer.save_pretrained(folder)
    shutil.copy(Path(folder) / "tokenizer.json", HERE)
    hypotheses, references = map(list, zip(*PAIRS))
    layers = {}
    for layer in [1, 2]:
        scorer = BERTScorer(model_type=folder, num_layers=layer, use_fast_tokenizer=True)
        scores = [[float(value) for value in values] for values in scorer.score(hypotheses, references)]
        layers[layer] = dict(zip(["precision", "recall", "f1"], scores))
    expected = {"oracle": f"bert-score {bert_score.__version__}", "pairs": PAIRS, "layers": layers}
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
