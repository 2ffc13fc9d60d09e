"""One person's own ratings in, her list out, through a model; nothing is kept.

It filters own items that the catalogue does not have before the model sees them: a warning with
their count would be a line in a log.
"""

import math
from dataclasses import asdict
from typing import Any

from tacit.errors import ConfigError, DataError
from tacit.models import Model


def recommended(model: Model, asked: Any) -> dict[str, Any]:
    """Answer a request for recommendations."""
    own, unknown = _own(model, asked)
    found = model.recommend(
        own,
        asked.n,
        include_rated=asked.include_rated,
        by=asked.by,
        candidates=_as_text(asked.candidates),
        exclude=_as_text(asked.exclude),
        because=asked.because,
    )
    stds: list[float | None] = [None] * len(found)
    if asked.std:
        stds = _stds(model, own, [row.item for row in found])
    rows = [{**asdict(row), "std": std} for row, std in zip(found, stds, strict=True)]
    return {"recommendations": rows, "unknown": unknown}


def predicted(model: Model, asked: Any) -> dict[str, Any]:
    """Answer a request for predictions."""
    own, unknown = _own(model, asked)
    scores = model.predict(own)
    ids = model.catalogue.ids.to_list()
    places = list(range(len(ids))) if asked.items is None else _places(model, asked.items)
    said = {
        "items": ids if asked.items is None else asked.items,
        "scores": [None if at < 0 else float(scores[at]) for at in places],
        "unknown": unknown,
    }
    if asked.std:
        stds = model.predict(own, return_std=True)[1]
        said["stds"] = [None if at < 0 else _finite(stds[at]) for at in places]
    return said


def items_page(model: Model, search: str, offset: int, limit: int) -> dict[str, Any]:
    """Return items whose title or id contains some text, by their place in the catalogue."""
    wanted = search.casefold().strip()
    ids = model.catalogue.ids.to_list()
    rows = (
        {"item": item, "title": title}
        for item, title in ((ids[at], model.catalogue.title(at)) for at in range(len(ids)))
        if wanted in title.casefold() or wanted in str(item).casefold()
    )
    found = list(rows)
    return {"total": len(found), "items": found[offset : offset + limit]}


def _own(model: Model, asked: Any) -> tuple[Any, int]:
    """Return own ratings of known items, and how many others there are."""
    if model.implicit:
        if asked.ratings:
            raise ConfigError("ratings: this model knows interactions only; give touched=[item...]")
        places = _places(model, asked.touched)
        known = [str(item) for item, at in zip(asked.touched, places, strict=True) if at >= 0]
        return known, len(places) - len(known)
    if asked.touched:
        raise ConfigError("touched: this model knows ratings; give ratings={item: rating}")
    places = _places(model, list(asked.ratings))
    rows = zip(asked.ratings.items(), places, strict=True)
    own = {item: rating for (item, rating), at in rows if at >= 0}
    _check_range(model, asked.ratings.values())
    return own, len(places) - len(own)


def _check_range(model: Model, ratings: Any) -> None:
    lo, hi = model.rating_range
    wrong = sum(not lo <= rating <= hi for rating in ratings)
    if wrong:
        raise DataError(f"ratings: {wrong} are outside the rating range [{lo:g}, {hi:g}]")


def _places(model: Model, items: list[Any]) -> list[int]:
    """Return places in the catalogue, -1 for unknown items; ids may be numbers or text."""
    if not items:
        return []
    return [int(at) for at in model.catalogue.positions(_as_text(items) or [])]


def _as_text(items: list[Any] | None) -> list[str] | None:
    """Return ids as text, which the catalogue compares them as; a list may mix both kinds."""
    return None if items is None else [str(item) for item in items]


def _stds(model: Model, own: Any, items: list[Any]) -> list[float | None]:
    if not items:
        return []
    return [_finite(std) for std in model.predict(own, items=items, return_std=True)[1]]


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
