"""Limits on requests; beyond them the server answers with a 4xx."""

from dataclasses import dataclass
from typing import Annotated

from tacit._validate import Count, Range, Validated


@dataclass(frozen=True)
class Limits(Validated):
    """What a caller may ask for.

    Attributes:
        body: bytes of a request's body (413).
        ratings: ratings of one person, and items of any other list (422).
        people: people of a batch (422).
        items: items of a list, or of a page of the catalogue (422).
        at_once: requests with a body that are answered at the same time (429).
        seconds: how long a body may take to arrive (408).
    """

    body: Count = 1 << 20
    ratings: Count = 5000
    people: Count = 100
    items: Count = 1000
    at_once: Count = 64
    seconds: Annotated[float, Range(0.01, 3600)] = 10.0
