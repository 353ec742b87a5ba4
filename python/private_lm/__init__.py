"""Language models trained under differential privacy, with certified accounting, private tokenizers, and verification.

`init` proposes a plan for a text, `certify` says what a plan promises, `train` carries it out, `generate` writes texts with the
model, and `verify` checks the finished run. Modules: `accountant`, `dp_tokenizer`, `plan`, `run`.
"""

from . import accountant, dp_tokenizer, plan, run
from .plan import certify, init
from .run import generate, train, verify

__all__ = ["accountant", "certify", "dp_tokenizer", "generate", "init", "plan", "run", "train", "verify"]
