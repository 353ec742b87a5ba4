"""Private training runs: training, texts of their models, and verification."""

from __future__ import annotations

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

from ._native import Progress, VerificationError, VerifiedRun, generate, train, verify

if TYPE_CHECKING:
    import numpy
    import numpy.typing

__all__ = ["Progress", "VerificationError", "VerifiedRun", "generate", "metrics", "train", "verify"]


def metrics(folder: str | os.PathLike[str]) -> dict[str, numpy.typing.NDArray[numpy.float64]]:
    """The public figures of a run's metrics.jsonl as NumPy arrays of equal length, one value for each evaluated step.

    Keys: step, learning_rate, gradient_to_noise, l2_clip_norm, epsilon (upper bound) and evaluation_nll (nats per token). A figure
    that a step does not have is NaN.

    Raises FileNotFoundError.
    """
    import numpy

    with open(pathlib.Path(folder) / "metrics.jsonl", encoding="utf-8") as file:
        lines: list[dict[str, Any]] = [json.loads(line) for line in file]
    names = ["step", "learning_rate", "gradient_to_noise", "l2_clip_norm", "epsilon", "evaluation_nll"]
    return {name: numpy.array([line.get(name) for line in lines], dtype=numpy.float64) for name in names}
