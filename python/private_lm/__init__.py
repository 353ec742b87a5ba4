"""Certified privacy accounting, private tokenizers, and verification of private training runs.

Modules: `accountant`, `dp_tokenizer`, `plan`, `run`.
"""

from . import accountant, dp_tokenizer, plan, run

__all__ = ["accountant", "dp_tokenizer", "plan", "run"]
