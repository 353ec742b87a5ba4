"""Weights after each of six steps of four optimizers on one sequence of gradients.

Oracles: torch.optim.AdamW and SGD (torch 2.15.0), transformers.optimization.Adafactor (transformers 5.23.0),
optax.lamb (optax 0.2.8), each in double precision. Run: python make.py > expected.json
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from transformers.optimization import Adafactor

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(7)
shapes = [[5, 4], [7]]
start = [rng.normal(size=s) for s in shapes]
# The fourth is large and the fifth zero, so that clipping by root mean square and zero updates occur.
scale = [1.0, 0.3, 2.0, 50.0, 0.0, 1.0]
grads = [[k * rng.normal(size=s) for s in shapes] for k in scale]
rates = [0.1, 0.2, 0.15, 0.1, 0.05, 0.02]


def by_torch(make):
    params = [torch.nn.Parameter(torch.tensor(w, dtype=torch.float64)) for w in start]
    optimizer = make(params)
    out = []
    for rate, grad in zip(rates, grads):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for p, g in zip(params, grad):
            p.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
        out.append([p.detach().numpy().ravel().tolist() for p in params])
    return out


def adamw(params):
    # Vectors do not decay.
    groups = [{"params": params[:1], "weight_decay": 0.5}, {"params": params[1:], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.95), eps=1e-6)


def adafactor(params):
    groups = [{"params": params[:1], "weight_decay": 0.1}, {"params": params[1:], "weight_decay": 0.0}]
    return Adafactor(groups, lr=1.0, scale_parameter=True, relative_step=False, warmup_init=False)


def lamb():
    params = [jnp.asarray(w) for w in start]
    solver = optax.lamb(lambda step: jnp.asarray(rates)[step], b1=0.9, b2=0.95, eps=1e-6, weight_decay=0.5, mask=[True, False])
    state = solver.init(params)
    out = []
    for grad in grads:
        updates, state = solver.update([jnp.asarray(g) for g in grad], state, params)
        params = optax.apply_updates(params, updates)
        out.append([np.asarray(p).ravel().tolist() for p in params])
    return out


print(json.dumps({
    "shapes": shapes,
    "start": [w.ravel().tolist() for w in start],
    "rates": rates,
    "gradients": [[g.ravel().tolist() for g in grad] for grad in grads],
    "adamw": by_torch(adamw),
    "sgd": by_torch(lambda params: torch.optim.SGD(params, lr=1.0, momentum=0.9)),
    "adafactor": by_torch(adafactor),
    "lamb": lamb(),
}))
