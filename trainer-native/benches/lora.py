"""Compares steps that train low-rank adapters: this trainer with privacy and without, peft, and peft with Opacus.

    python lora.py TRAINER

All start from one checkpoint with the shape of Qwen2.5-0.5B and random weights in bfloat16, and take steps of 4 x 64 tokens with
adapters of rank 8 on queries, keys, values and outputs. The trainer also takes steps with the shape of Llama-3.2-1B. Each runs in
processes of its own. Needs torch, transformers, peft and opacus.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

SHAPES = {
    "Qwen2.5-0.5B": ("Qwen2", {
        "vocab_size": 151_936, "hidden_size": 896, "intermediate_size": 4_864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "max_position_embeddings": 32_768,
    }),
    "Llama-3.2-1B": ("Llama", {
        "vocab_size": 128_256, "hidden_size": 2_048, "intermediate_size": 8_192, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131_072,
    }),
}
LENGTH, BATCH, RANK = 64, 4, 8
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj"]
# Numbers of steps of two runs of the trainer; their difference is that of the steps.
FEW, MORE = 2, 5


def make(name, folder):
    import tokenizers
    import torch
    import transformers

    family, sizes = SHAPES[name]
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    config = getattr(transformers, family + "Config")(**sizes, tie_word_embeddings=True, bos_token_id=None, eos_token_id=sizes["vocab_size"] - 1)
    getattr(transformers, family + "ForCausalLM")(config).save_pretrained(folder)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    unused = [f"unused{at}" for at in range(sizes["vocab_size"] - 1 - len(alphabet))]
    bpe = tokenizers.models.BPE(vocab={token: at for at, token in enumerate(alphabet + unused)}, merges=[])
    tokenizer = tokenizers.Tokenizer(bpe)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(f"{folder}/tokenizer.json")
    pathlib.Path(folder, "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')


def peft_steps(folder, private):
    """Prints seconds, CPU seconds and MB of a step of peft, in 32 bits as it trains on a CPU."""
    import peft
    import torch
    import transformers

    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=16, target_modules=TARGETS, task_type="CAUSAL_LM"))
    model.train()
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=1e-4)
    if private:
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        model = GradSampleModule(model)
        optimizer = DPOptimizer(optimizer, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=BATCH)
    times = []
    for _ in range(4):
        ids = torch.randint(0, 256, (BATCH, LENGTH))
        start = time.perf_counter(), time.process_time()
        logits = model(input_ids=ids, position_ids=torch.arange(LENGTH).repeat(BATCH, 1)).logits
        torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    # The first step also allocates.
    seconds, processor = (sum(column) / len(column) for column in zip(*times[1:]))
    print(json.dumps([seconds, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6]))


def process(arguments, folder):
    """Returns what a process prints, its seconds, its CPU seconds, and its peak of memory in MB."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        child = subprocess.Popen(arguments, cwd=folder, stdout=out, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        out.seek(0), said.seek(0)
        if status:
            raise SystemExit(said.read().decode())
        return out.read(), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def plan(steps, folder, trainer):
    described = json.loads(process([trainer, "describe", "base"], folder)[0])
    model = described.get("model", described) | {
        "context": LENGTH, "initial": {"checkpoint": "base"}, "checkpoint_made_from": "public_text",
        "trainable": {"lora": {"rank": RANK, "alpha": 16.0, "targets": TARGETS}},
    }
    return {
        "version": 1, "name": "lora",
        "data": {"source": {"path": "text.txt"}, "units": BATCH},
        "privacy": {"unit": "record", "relation": "add_or_remove_one", "delta": 1e-2, "epsilon": 50.0, "sampling": "poisson"},
        "tokenizer": {"public": {"path": "base/tokenizer.json", "made_from": "public_text"}},
        "model": model,
        "training": {
            # Each unit takes part in each step.
            "objective": "causal_lm", "expected_batch_size": BATCH, "steps": steps, "l2_clip_norm": 1.0,
            "optimizer": {"adamw": {"weight_decay": 0.0}},
            "learning_rate": {"peak": 1e-4, "warmup_steps": 0, "decay": "constant"},
        },
        "performance": {"physical_batch": BATCH},
    }


def steps_of_trainer(trainer, folder, options):
    runs = {}
    for steps in (FEW, MORE):
        pathlib.Path(folder, "plan.json").write_text(json.dumps(plan(steps, folder, trainer)))
        run = f"run{len(os.listdir(folder))}"
        _, *runs[steps] = process([trainer, "train", "--plan", "plan.json", "--out", run, *options], folder)
    of_step = [(runs[MORE][at] - runs[FEW][at]) / (MORE - FEW) for at in (0, 1)]
    outside = runs[FEW][1] - FEW * of_step[1]
    return *of_step, runs[MORE][2], outside


def row(shape, what, seconds, processor, memory, outside=None):
    rest = "" if outside is None else f"{outside:.1f}"
    print(f"| {shape} | {what} | {processor:.1f} | {seconds:.1f} | {memory:,.0f} | {rest} |", flush=True)


def main(trainer):
    print("| shape | steps of | CPU s a step | s a step | peak MB | CPU s outside the steps |\n|---|---|---|---|---|---|")
    for shape in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            process([sys.executable, __file__, "--make", shape, f"{folder}/base"], folder)
            text = "".join(f"{letter}{' some words' * 12}\n" for letter in "abcd"[:BATCH])
            pathlib.Path(folder, "text.txt").write_text(text)
            row(shape, "this trainer, private", *steps_of_trainer(trainer, folder, []))
            row(shape, "this trainer, not private", *steps_of_trainer(trainer, folder, ["--non-private"]))
            if shape == "Qwen2.5-0.5B":
                for what, option in [("peft, 32 bits", "--peft"), ("peft with Opacus, 32 bits", "--opacus")]:
                    row(shape, what, *json.loads(process([sys.executable, __file__, option, "base"], folder)[0]))


if sys.argv[1] == "--make":
    make(*sys.argv[2:])
elif sys.argv[1] in ("--peft", "--opacus"):
    peft_steps(sys.argv[2], sys.argv[1] == "--opacus")
else:
    main(os.path.abspath(sys.argv[1]))
