"""Writes expected.json: sacreBLEU's BLEU and chrF of small corpora.

Run as `python make.py` in this folder.
"""

import json

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

PAIRS = [
    ("The cat sat on the mat.", "The cat is sitting on the mat."),
    ("A man, aged 34, paid $1,234.56 (about 1.1k) in 2019-2020.", "A man aged 34 paid $1,234.56 - about 1,1k - in 2019 - 2020."),
    ("", "An empty answer gets no credit"),
    ("Nothing was asked for", ""),
    ("", ""),
    ("Ein kleines Mädchen klettert in ein Spielhaus aus Holz.", "Ein kleines Mädchen klettert in ein Spielhaus aus Holz."),
    ("Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche", "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche ."),
    ("&quot;Tom &amp; Jerry&quot; &lt;b&gt; it's well-known... isn't it?!", "\"Tom & Jerry\" <b> it 's well - known . . . isn't it ? !"),
    ("私は東京に行きます。 naïve café — “quoted” 50€ ＋ ½ ٣٫٥", "私は東京へ行きました。 naive café – „quoted“ 50 € + ½ ٣,٥"),
    ("tabs\tand\u00a0no-break\u2003spaces \u001c here \u0085 end ", "tabs and no-break spaces here end"),
    ("the the the the the the the", "the cat the"),
    ("(hi) 'tis -- a! b, c.d e.f, 1.2 .5 5. ,x", "(hi) ' tis - a ! b , c . d e . f 1.2 . 5 5 . , x"),
    ("<skipped>word x/y [z] {q} ~ ` ^ _ | \\ @home #tag 100% a+b=c", "word x / y z q home tag 100 % a + b = c"),
    ("emoji 😀👍 ok", "emoji 😀 👍 ok"),
    ("short", "short"),
    ("one two", "one three"),
]
METRICS = {
    "bleu_13a": BLEU(), "bleu_intl": BLEU(tokenize="intl"), "bleu_none": BLEU(tokenize="none", force=True),
    "chrf": CHRF(), "chrf++": CHRF(word_order=2),
}

corpora = [[pair] for pair in PAIRS] + [PAIRS, PAIRS[:7], PAIRS[7:], PAIRS[14:]]
expected = []
for corpus in corpora:
    hypotheses, references = [pair[0] for pair in corpus], [pair[1] for pair in corpus]
    found = dict(hypotheses=hypotheses, references=references)
    for name, metric in METRICS.items():
        score = metric.corpus_score(hypotheses, [references])
        signature = metric.get_signature().format()
        found[name] = dict(score=score.score, printed=score.format(signature=signature, width=2))
    expected.append(found)
with open("expected.json", "w", encoding="utf-8") as file:
    file.write(json.dumps(dict(oracle=f"sacreBLEU {sacrebleu.__version__}", corpora=expected), ensure_ascii=False))
