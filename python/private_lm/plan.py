"""Plans of private training runs."""

from ._native import CertifiedPlan, certify

__all__ = ["CertifiedPlan", "certify"]
