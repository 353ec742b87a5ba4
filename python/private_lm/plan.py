"""Plans of private training runs."""

from ._native import CertifiedPlan, Proposal, certify, init

__all__ = ["CertifiedPlan", "Proposal", "certify", "init"]
