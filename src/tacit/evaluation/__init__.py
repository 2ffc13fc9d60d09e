"""Splits, accuracy and the HTML report. NOT PRIVATE: for people who own the ratings."""

from tacit.evaluation.accuracy import (
    NOTICE,
    Accuracy,
    evaluate,
    global_mean_accuracy,
    item_mean_accuracy,
    split,
    user_mean_accuracy,
)
from tacit.evaluation.report import write_report

__all__ = [
    "NOTICE",
    "Accuracy",
    "evaluate",
    "global_mean_accuracy",
    "item_mean_accuracy",
    "split",
    "user_mean_accuracy",
    "write_report",
]
