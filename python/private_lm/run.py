"""Finished private training runs."""

from ._native import VerificationError, VerifiedRun, verify

__all__ = ["VerificationError", "VerifiedRun", "verify"]
