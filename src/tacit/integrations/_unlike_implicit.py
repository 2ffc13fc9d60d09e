"""What the models of `implicit` have and a private one does not, and what to do instead."""

from typing import Any

from tacit.errors import ConfigError

__all__ = ["refuse_settings", "why_absent"]

_UNEXPECTED = {
    "factors": "noise decides how many factors there are; algorithm=Interactions(rank=...) sets "
    "the most",
    "regularization": "the local rule weighs factors by their noise",
    "alpha": "confidences are not looked at",
    "iterations": "there are none; algorithm=Interactions(...) has the settings of this method",
    "random_state": "noise comes from the operating system and has no seed",
    "num_threads": "all cores are used",
    "use_gpu": "it runs on the CPU",
    "calculate_training_loss": "a training loss would tell about ratings; evaluate on held-out "
    "rows instead",
} | dict.fromkeys(("dtype", "use_native", "use_cg"), "it is not needed")
_ABSENT = {
    "user_factors": "a published model holds nothing of any user; recalculate_user(userid, row) "
    "computes the vector of a row that is given",
    "partial_fit_users": "users need none: recommend computes from the row that is given",
    "partial_fit_items": "new items are known by their features: see docs/item-features.md",
    "recalculate_item": "it would read the rows of all who touched the item, without noise",
    "recommend_all": "call recommend with all users and the whole matrix",
    "rank_items": "call recommend with items=...",
    "to_gpu": "it runs on the CPU",
}
_ABSENT["user_norms"] = _ABSENT["user_factors"]


def refuse_settings(theirs: dict[str, Any]) -> None:
    """Say what to do about settings of `AlternatingLeastSquares`."""
    for name, value in theirs.items():
        if name not in _UNEXPECTED:
            raise TypeError(f"PrivateRecommender has no setting {name!r}")
        raise ConfigError(f"{name}={value!r}: leave it out; {_UNEXPECTED[name]}")


def why_absent(name: str) -> str:
    """Return why an attribute is missing, to stand behind its name; nothing for other names."""
    return f": {_ABSENT[name]}" if name in _ABSENT else ""
