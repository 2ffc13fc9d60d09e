"""Splits and measures of accuracy. NOT PRIVATE: for people who own the ratings."""

from tacit.evaluation.accuracy import (
    NOTICE,
    Accuracy,
    evaluate,
    global_mean_accuracy,
    item_mean_accuracy,
    split,
    user_mean_accuracy,
)
from tacit.evaluation.calibration import Calibration, Reliability, calibrate
from tacit.evaluation.popularity import ExactPopularity
from tacit.evaluation.ranking import Ranking, rank

__all__ = [
    "NOTICE",
    "Accuracy",
    "Calibration",
    "ExactPopularity",
    "Ranking",
    "Reliability",
    "calibrate",
    "evaluate",
    "global_mean_accuracy",
    "item_mean_accuracy",
    "rank",
    "split",
    "user_mean_accuracy",
]
