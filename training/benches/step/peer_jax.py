"""Times private steps of the same model in JAX: gradients example by example through vmap, clipped, summed, noised; AdamW.

One JSON object a line: peer, seconds. Products are in full f32.
"""

import functools
import json
import os
import statistics
import sys
import time

if sys.argv[2] == "cpu":
    os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp

jax.config.update("jax_default_matmul_precision", "highest")


def first(s):
    """Weights as the models start."""
    d, keys = s["d_model"], iter(jax.random.split(jax.random.key(0), 100 * s["layers"]))

    def dense(rows, columns):
        return {"w": 0.02 * jax.random.normal(next(keys), (rows, columns)), "b": jnp.zeros(columns)}

    def norm():
        return {"gain": jnp.ones(d), "bias": jnp.zeros(d)}

    def block():
        return {"norm_1": norm(), "norm_2": norm(), "qkv": dense(d, 3 * d), "out": dense(d, d),
                "widen": dense(d, 4 * d), "narrow": dense(4 * d, d)}

    weights = {"tokens": 0.02 * jax.random.normal(next(keys), (s["vocabulary"], d)),
               "positions": 0.02 * jax.random.normal(next(keys), (s["context"], d)),
               "blocks": [block() for _ in range(s["layers"])], "norm": norm()}
    if s["family"] == "bert":
        weights["transform"] = dense(d, d)
    return weights


def normalized(p, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["gain"] + p["bias"]


def affine(p, x):
    return x @ p["w"] + p["b"]


def attend(s, p, x):
    t, d = x.shape
    q, k, v = (part.reshape(t, s["heads"], d // s["heads"]).transpose(1, 0, 2)
               for part in jnp.split(affine(p["qkv"], x), 3, 1))
    scores = q @ k.transpose(0, 2, 1) / (d // s["heads"]) ** 0.5
    if s["family"] != "bert":
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    return affine(p["out"], (jax.nn.softmax(scores) @ v).transpose(1, 0, 2).reshape(t, d))


def loss(s, weights, tokens):
    """Of one example; BERT predicts at the first places, which cost what others do."""
    bert = s["family"] == "bert"
    gelu = functools.partial(jax.nn.gelu, approximate=not bert)
    x = weights["tokens"][tokens] + weights["positions"]
    for p in weights["blocks"]:
        if bert:
            x = normalized(p["norm_1"], x + attend(s, p, x))
            x = normalized(p["norm_2"], x + affine(p["narrow"], gelu(affine(p["widen"], x))))
        else:
            x = x + attend(s, p, normalized(p["norm_1"], x))
            x = x + affine(p["narrow"], gelu(affine(p["widen"], normalized(p["norm_2"], x))))
    if bert:
        x = gelu(affine(weights["transform"], x[: s["masked"]]))
    logits = jax.nn.log_softmax(normalized(weights["norm"], x) @ weights["tokens"].T)
    return -jnp.take_along_axis(logits, tokens[: len(x), None], 1).mean()


def clipped_sum(s, weights, tokens):
    """Of the gradients of some examples, each of norm 1 at the most."""
    grads = jax.vmap(jax.grad(functools.partial(loss, s)), (None, 0))(weights, tokens)
    squares = sum((leaf**2).reshape(len(tokens), -1).sum(1) for leaf in jax.tree.leaves(grads))
    factors = jnp.minimum(1.0, jax.lax.rsqrt(squares + 1e-20))
    return jax.tree.map(lambda leaf: jnp.tensordot(factors, leaf, 1), grads)


def update(s, state, total, key):
    """Noise of deviation 1 on the sum, and AdamW."""
    weights, first, second, count = state
    leaves, shape = jax.tree.flatten(total)
    keys = jax.random.split(key, len(leaves))
    noisy = [(leaf + jax.random.normal(k, leaf.shape)) / s["lot"] for leaf, k in zip(leaves, keys)]
    grads, count = jax.tree.unflatten(shape, noisy), count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)

    def moved(w, m, v):
        return 0.9999999 * w - 1e-5 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(moved, weights, first, second), first, second, count


def private(s):
    weights = first(s)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    tokens = jax.random.randint(jax.random.key(1), (s["lot"], s["context"]), 0, s["vocabulary"])
    parts = [tokens[at : at + s["rows"]] for at in range(0, s["lot"], s["rows"])]
    part_sum = jax.jit(lambda total, weights, part: jax.tree.map(jnp.add, total, clipped_sum(s, weights, part)), donate_argnums=0)
    finish = jax.jit(functools.partial(update, s), donate_argnums=0)
    state = [(weights, zeros, jax.tree.map(jnp.zeros_like, weights), jnp.zeros(()))]

    def step(number):
        total = jax.tree.map(jnp.zeros_like, state[0][0])
        for part in parts:
            total = part_sum(total, state[0][0], part)
        state[0] = jax.block_until_ready(finish(state[0], total, jax.random.key(number)))

    return step


def main():
    for line in sys.stdin:
        s = json.loads(line)
        name = "JAX, vmap" + ("" if jax.default_backend() == "cpu" else " (CUDA)")
        try:
            step = private(s)
            step(0)
            times = []
            for number in range(s["steps"]):
                start = time.perf_counter()
                step(number + 1)
                times.append(time.perf_counter() - start)
            print(json.dumps({"peer": name, "seconds": statistics.median(times)}), flush=True)
        except Exception as failure:  # A peer that gives up is a result.
            print(json.dumps({"peer": name, "failed": repr(failure)[:200]}), flush=True)


if __name__ == "__main__":
    main()
