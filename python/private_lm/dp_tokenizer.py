"""Tokenizers: trained on private text with differential privacy, or read from files of well-known models."""

from ._native import Tokenizer, train

__all__ = ["Tokenizer", "train"]
