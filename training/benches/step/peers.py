"""Times steps of the same model in PyTorch, without privacy and with Opacus; one JSON object a line: peer, seconds.

With the precision bf16, steps run under torch.autocast. The non-private model ties its head to the token table, as ours does. Opacus cannot tie, so its models have a head of
their own; the products are the same.
"""

import json
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        d = s["d_model"]
        self.heads, self.bert = s["heads"], s["family"] == "bert"
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.widen, self.narrow = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, d // self.heads).transpose(1, 2) for p in self.qkv(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=not self.bert)
        return self.out(y.transpose(1, 2).reshape(b, t, d))

    def widened(self, x):
        return self.narrow(F.gelu(self.widen(x), approximate="none" if self.bert else "tanh"))

    def forward(self, x):
        if self.bert:
            x = self.norm_1(x + self.attend(x))
            return self.norm_2(x + self.widened(x))
        x = x + self.attend(self.norm_1(x))
        return x + self.widened(self.norm_2(x))


class Model(nn.Module):
    """GPT-2, or BERT with its masked head; predictions at the first places, which cost what others do."""

    def __init__(self, s, tied):
        super().__init__()
        d = s["d_model"]
        self.bert = s["family"] == "bert"
        self.places = s["masked"] if self.bert else s["context"]
        self.tokens, self.positions = nn.Embedding(s["vocabulary"], d), nn.Embedding(s["context"], d)
        self.blocks = nn.ModuleList(Block(s) for _ in range(s["layers"]))
        self.norm = nn.LayerNorm(d)
        self.transform = nn.Linear(d, d) if self.bert else None
        self.head = nn.Linear(d, s["vocabulary"], bias=False)
        if tied:
            self.head.weight = self.tokens.weight
        # As the models start; wide logits would make subnormal gradients, which are slow to multiply.
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device).repeat(len(tokens), 1)
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        if self.bert:
            x = F.gelu(self.transform(x[:, : self.places].contiguous()))
        return self.head(self.norm(x))


def main():
    torch.set_num_threads(int(sys.argv[1]))
    on_gpu = sys.argv[2] != "cpu" and torch.cuda.is_available()
    torch.set_default_device("cuda" if on_gpu else "cpu")
    for line in sys.stdin:
        s = json.loads(line)
        torch.manual_seed(0)
        tokens = torch.randint(s["vocabulary"], (s["lot"], s["context"]))
        for peer, make in (("PyTorch, not private", plain), ("Opacus, ghost", ghost), ("Opacus, per sample", per_sample)):
            try:
                step = make(s, tokens)
                if s.get("precision") == "bf16":
                    step = torch.autocast("cuda" if on_gpu else "cpu", torch.bfloat16)(step)
                step()
                if on_gpu:
                    torch.cuda.synchronize()
                times = []
                for _ in range(s["steps"]):
                    start = time.perf_counter()
                    step()
                    if on_gpu:
                        torch.cuda.synchronize()
                    times.append(time.perf_counter() - start)
                print(json.dumps({"peer": peer + (" (CUDA)" if on_gpu else ""), "seconds": statistics.median(times)}), flush=True)
            except Exception as failure:  # A peer that gives up is a result.
                print(json.dumps({"peer": peer, "failed": repr(failure)[:200]}), flush=True)


def pieces(s, tokens):
    """Inputs and targets of the micro-batches."""
    width = s["masked"] if s["family"] == "bert" else s["context"]
    for part in tokens.split(s["rows"]):
        yield part, part[:, :width].contiguous()


def plain(s, tokens):
    model = Model(s, tied=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step():
        optimizer.zero_grad()
        for inputs, targets in pieces(s, tokens):
            logits = model(inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
            (loss / (s["lot"] * targets.shape[1])).backward()
        optimizer.step()

    return step


def ghost(s, tokens):
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    model = GradSampleModuleFastGradientClipping(Model(s, tied=False), max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.AdamW(model.parameters(), lr=1e-5), noise_multiplier=1.0, max_grad_norm=1.0,
        expected_batch_size=s["lot"])
    criterion = DPLossFastGradientClipping(model, optimizer, nn.CrossEntropyLoss())

    def step():
        optimizer.zero_grad()
        parts = list(pieces(s, tokens))
        for at, (inputs, targets) in enumerate(parts):
            optimizer.signal_skip_step(do_skip=at + 1 < len(parts))
            loss = criterion(model(inputs).flatten(0, 1), targets.flatten(), shape=targets.shape)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


def per_sample(s, tokens):
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = GradSampleModule(Model(s, tied=False))
    optimizer = DPOptimizer(
        torch.optim.AdamW(model.parameters(), lr=1e-5), noise_multiplier=1.0, max_grad_norm=1.0,
        expected_batch_size=s["lot"])

    def step():
        optimizer.zero_grad()
        parts = list(pieces(s, tokens))
        for at, (inputs, targets) in enumerate(parts):
            optimizer.signal_skip_step(do_skip=at + 1 < len(parts))
            loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="none")
            loss.view(targets.shape).mean(1).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


if __name__ == "__main__":
    main()
