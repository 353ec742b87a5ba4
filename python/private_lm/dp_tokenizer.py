"""Tokenizers: trained on private text with differential privacy, or read from files of well-known models."""

from ._native import Tokenizer
from ._native import train_tokenizer as train

__all__ = ["Tokenizer", "train"]
