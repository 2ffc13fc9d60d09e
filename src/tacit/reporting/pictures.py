"""Pictures of a model for a page: its budget, its factors against the noise, and a map of items.

They are SVG with widths in percent, so that text stays as large on a phone as on a desk, and every
colour is one of the page's style. All numbers are published ones.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.reporting.markup import escape, number

_COLOURS = 8  # .part-0 to .part-7 of the style
_MAP_HEIGHT = 460
_NARROW, _WIDE = 330, 860  # widths in pixels that labels are laid out for
_LETTER, _LINE = 6.6, 17  # a letter's width and a line's height, in pixels
_LONGEST = 24
_BAR = 26


def budget_bar(releases: Sequence[Mapping[str, Any]]) -> str:
    """Draw what each kind of release cost, as shares of the squared total, with a legend."""
    costs: dict[str, float] = {}
    for release in releases:
        kind = str(release.get("kind") or release["name"])
        costs[kind] = costs.get(kind, 0.0) + float(release["mu"] or 0.0) ** 2
    whole = math.fsum(costs.values())
    if not (whole > 0 and math.isfinite(whole)):
        return ""
    parts = [(kind.replace("_", " "), cost / whole) for kind, cost in costs.items()]
    told = "; ".join(f"{kind}: {100 * share:.0f} %" for kind, share in parts)
    drawn, left = [], 0.0
    for k, (kind, share) in enumerate(parts):
        drawn.append(
            f'<rect class="part-{k % _COLOURS}" x="{100 * left:.2f}%" y="0" '
            f'width="{100 * share:.2f}%" height="30"><title>{escape(kind)}: '
            f"{100 * share:.1f} %</title></rect>"
        )
        left += share
    legend = "".join(
        f'<li><span class="key part-{k % _COLOURS}"></span>{escape(kind)} '
        f'<span class="soft">{100 * share:.0f} %</span></li>'
        for k, (kind, share) in enumerate(parts)
    )
    return (
        '<svg class="whole" height="30" role="img" aria-labelledby="budget-d">'
        f'<desc id="budget-d">{escape(told)}</desc>{"".join(drawn)}</svg>'
        f'<ul class="legend">{legend}</ul>'
    )


class Bar(NamedTuple):
    """A factor: its strength as measured, what noise alone would add, and what was kept of it."""

    label: str
    measured: float
    noise: float
    kept: float


def spectrum(name: str, bars: Sequence[Bar]) -> str:
    """Draw each factor's strength, what was kept of it, and the noise floor as a mark."""
    longest = max((max(bar.measured, bar.noise) for bar in bars), default=0.0) or 1.0
    told = "; ".join(
        f"{bar.label}: {number(bar.measured)}, noise {number(bar.noise)}" for bar in bars
    )
    drawn = []
    for k, bar in enumerate(bars):
        top = k * _BAR
        wide, kept, floor = (
            70 * value / longest for value in (bar.measured, min(bar.kept, bar.measured), bar.noise)
        )
        drawn.append(
            f'<text x="0" y="{top + 15}">{escape(bar.label)}</text>'
            f'<svg x="3.4em" y="{top}" width="88%" height="{_BAR}" overflow="visible">'
            f'<rect class="track" x="0" y="4" width="{wide:.2f}%" height="14" rx="2"/>'
            f'<rect class="bar" x="0" y="4" width="{kept:.2f}%" height="14" rx="2"/>'
            f'<line class="floor" x1="{floor:.2f}%" y1="1" x2="{floor:.2f}%" y2="21"/></svg>'
            f'<text class="value" x="100%" y="{top + 15}" text-anchor="end">'
            f"{number(bar.measured, _two_digits)}</text>"
        )
    return (
        f'<svg class="whole" height="{_BAR * len(bars)}" role="img" '
        f'aria-labelledby="{name}-d"><desc id="{name}-d">{escape(told)}</desc>'
        f"{''.join(drawn)}</svg>"
    )


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if value and not 0.01 <= value < 100 else f"{value:.2f}"


class Dot(NamedTuple):
    """An item on the map: where it is, from 0 to 1, its title, and how popular it is."""

    x: float
    y: float
    title: str
    weight: float


def item_map(dots: Sequence[Dot]) -> str:
    """Draw items as dots, with the titles of as many as there is room for, popular ones first."""
    narrow = _labelled(dots, _NARROW, set())
    wide = _labelled(dots, _WIDE, narrow)
    drawn = "".join(
        f'<circle cx="{_across(dot.x):.2f}%" cy="{_down(dot.y):.0f}" '
        f'r="{2.5 + 4 * math.sqrt(dot.weight):.1f}"><title>{escape(dot.title)}</title></circle>'
        for dot in dots
    )
    labels = "".join(_label(dots[k], k in narrow) for k in sorted(wide))
    return (
        f'<svg class="whole map" height="{_MAP_HEIGHT}" role="img" aria-labelledby="map-d">'
        f'<desc id="map-d">{len(dots)} items, those that are alike near each other</desc>'
        f"<g>{drawn}</g>{labels}</svg>"
    )


def _across(x: float) -> float:
    return 2 + 76 * x


def _down(y: float) -> float:
    return 16 + (_MAP_HEIGHT - 32) * y


def _label(dot: Dot, always: bool) -> str:
    look = "" if always else ' class="roomy"'
    return (
        f'<text{look} x="{_across(dot.x):.2f}%" dx="7" y="{_down(dot.y) + 4:.0f}">'
        f"{escape(_short(dot.title))}</text>"
    )


def _short(title: str) -> str:
    return title if len(title) <= _LONGEST else title[: _LONGEST - 1] + "…"


def _labelled(dots: Sequence[Dot], width: int, first: set[int]) -> set[int]:
    """Return whose titles fit beside each other at this width; those of `first` come first."""
    taken: list[tuple[float, float, float]] = []
    chosen: set[int] = set()
    order = sorted(range(len(dots)), key=lambda k: (k not in first, -dots[k].weight, k))
    for k in order:
        x, y = _across(dots[k].x) / 100 * width + 7, _down(dots[k].y)
        end = x + _LETTER * len(_short(dots[k].title))
        free = all(
            abs(y - other) >= _LINE or end < left or right < x for other, left, right in taken
        )
        if free and end <= width:
            taken.append((y, x, end))
            chosen.add(k)
    return chosen


def principal_axes(vectors: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return each row's place on the two axes along which rows differ most, from 0 to 1."""
    if vectors.shape[0] < 3 or vectors.shape[1] < 2:
        return None
    centred = vectors - vectors.mean(axis=0)
    left, strengths, _ = np.linalg.svd(centred, full_matrices=False)
    if not strengths[1] > 1e-9 * max(strengths[0], 1e-300):
        return None
    ranks = np.argsort(np.argsort(left[:, :2] * strengths[:2], axis=0), axis=0)
    places = left[:, :2] * strengths[:2]
    places = (places - places.min(axis=0)) / np.ptp(places, axis=0)
    return np.asarray(0.5 * places + 0.5 * ranks / (len(ranks) - 1))
