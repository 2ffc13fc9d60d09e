"""Splits and measures of accuracy. NOT PRIVATE: for people who own the ratings."""

from tacit.evaluation.accuracy import (
    Accuracy,
    evaluate,
    global_mean_accuracy,
    item_mean_accuracy,
    split,
    user_mean_accuracy,
)
from tacit.evaluation.calibration import Calibration, Reliability, calibrate, measure
from tacit.evaluation.new_users import (
    Estimate,
    FoldIn,
    NewUserRanking,
    fold_in,
    rank_new_users,
)
from tacit.evaluation.notice import NOTICE
from tacit.evaluation.ranking import ExactPopularity, Ranking, rank
from tacit.evaluation.splitting import split_table

__all__ = [
    "NOTICE",
    "Accuracy",
    "Calibration",
    "Estimate",
    "ExactPopularity",
    "FoldIn",
    "NewUserRanking",
    "Ranking",
    "Reliability",
    "calibrate",
    "evaluate",
    "fold_in",
    "global_mean_accuracy",
    "item_mean_accuracy",
    "measure",
    "rank",
    "rank_new_users",
    "split",
    "split_table",
    "user_mean_accuracy",
]
