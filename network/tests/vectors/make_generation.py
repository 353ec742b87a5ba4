"""Writes generation.json: what transformers generates, greedily and with beams, from the tiny models beside this file.

Run as `python make_generation.py` in this folder.
"""

import json
import platform
import random
from collections import Counter

import torch
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig, T5ForConditionalGeneration

DECODERS = ["gpt2_tiny", "gemma_tiny", "llama_tiny"]
MOST = 7  # the prompts have up to 5 tokens, the models read 12
SETTINGS = [
    dict(num_beams=1),
    dict(num_beams=1, no_repeat_ngram_size=2, min_new_tokens=3),
    dict(num_beams=2),
    dict(num_beams=3, length_penalty=0.0),
    dict(num_beams=4, length_penalty=2.0, early_stopping="never"),
    dict(num_beams=3, length_penalty=-1.0, early_stopping=True),
    dict(num_beams=4, length_penalty=0.6, no_repeat_ngram_size=2, min_new_tokens=2),
]


def generate(model, prompt, end, settings):
    config = GenerationConfig(do_sample=False, max_new_tokens=MOST, eos_token_id=end, pad_token_id=0,
                              decoder_start_token_id=0, bos_token_id=None, **settings)
    ids = torch.tensor([prompt])
    output = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)[0].tolist()
    generated = output[1:] if model.config.is_encoder_decoder else output[len(prompt):]
    return generated[:generated.index(end)] if end in generated else generated


def cases(name, model):
    draw = random.Random(name)
    vocabulary = model.config.vocab_size
    prompts = [[draw.randrange(1, vocabulary) for _ in range(length)] for length in [1, 5, 2, 4, 3, 2, 5, 1]]
    # A token that the model likes ends the text, so that texts end at different lengths.
    free = Counter(token for prompt in prompts for token in generate(model, prompt, vocabulary - 1, dict(num_beams=3)))
    ends = [token for token, _ in free.most_common(4)][1::2]
    for end in ends:
        for settings in SETTINGS:
            yield dict(end=end, settings=settings, texts=[generate(model, prompt, end, settings) for prompt in prompts])
    yield prompts


found = {}
for name in DECODERS + ["t5_tiny", "t5_v1_1_tiny"]:
    kind = T5ForConditionalGeneration if name.startswith("t5") else AutoModelForCausalLM
    *all_cases, prompts = cases(name, kind.from_pretrained(name, dtype=torch.float32).eval())
    found[name] = dict(prompts=prompts, cases=all_cases)
oracle = f"transformers {transformers.__version__}, torch {torch.__version__}, python {platform.python_version()}"
with open("generation.json", "w", encoding="utf-8") as file:
    file.write(json.dumps(dict(oracle=oracle, most=MOST, models=found)))
