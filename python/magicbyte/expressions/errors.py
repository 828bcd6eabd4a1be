"""The errors of expressions."""

from __future__ import annotations

__all__ = ["EvaluationError", "ExpressionError"]


class ExpressionError(ValueError):
    """The expression is not valid, or uses a forbidden construct. Nothing was evaluated."""


class EvaluationError(ValueError):
    """The expression failed for a record; the message names the record, but shows none of its content."""
