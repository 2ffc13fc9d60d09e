"""Building blocks of HTML pages: page, sections, tables and bars. All text is escaped here.

A page stands alone: no scripts, no fonts, nothing from a network. It follows the reader's choice of
light or dark, and fits a phone.
"""

import html
import math
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import count
from string import Template

NOT_PRIVATE = '<span class="badge not">NOT PRIVATE</span>'
_ROW = 72  # height of one bar with its label


@dataclass(frozen=True)
class Section:
    """A part of a page: a name for links, a heading as text, a badge and a body as HTML."""

    name: str
    heading: str
    body: str
    badge: str = ""

    def html(self) -> str:
        """Return the section as HTML."""
        badge = f" {self.badge}" if self.badge else ""
        return (
            f'<section aria-labelledby="{escape(self.name)}">\n'
            f'<h2 id="{escape(self.name)}">{escape(self.heading)}{badge}</h2>\n'
            f"{self.body}\n</section>"
        )


def page(
    title: str, headline: str, lead: str, sections: Iterable[Section], footer: str, brand: str = ""
) -> str:
    """Return a whole page; `footer` is HTML, all other texts are not."""
    here = resources.files("tacit.reporting")
    shell = Template(here.joinpath("page.html").read_text("utf-8"))
    return shell.substitute(
        title=escape(title),
        style=here.joinpath("page.css").read_text("utf-8"),
        brand=escape(brand or title),
        headline=escape(headline),
        lead=escape(lead),
        sections="\n".join(section.html() for section in sections),
        footer=footer,
    )


def escape(text: str) -> str:
    """Make any text safe inside HTML: markup, control characters and unpaired surrogates."""
    tame = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cs") else c for c in text
    )
    return html.escape(tame, quote=True)


def _four_digits(value: float) -> str:
    return f"{value:.4g}"


def number(value: object, written: Callable[[float], str] = _four_digits) -> str:
    """Write a number of the certificate, with four digits if not asked for otherwise.

    A missing one is a dash. What is promised is written by `promise.shown`, to its last digit, and
    what something costs by `promise.rounded_up`.
    """
    if not isinstance(value, int | float):
        return "–"
    if math.isinf(value):
        return "unbounded"
    mantissa, _, exponent = written(value).partition("e")
    if not exponent:
        return mantissa
    power = f"10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return power if mantissa == "1" else f"{mantissa} × {power}"


def sentences(told: Iterable[str]) -> str:
    """Write sentences as a list."""
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in told) + "</ul>"


def definitions(pairs: Mapping[str, str]) -> str:
    """Write names and their explanations."""
    rows = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs.items())
    return "<dl>" + "".join(rows) + "</dl>"


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    name: int = 0,
    numbers: int | None = None,
    total: Sequence[str] | None = None,
    marked: Collection[int] = (),
) -> str:
    """Write a table; column `name` heads its row, those from `numbers` on stand right.

    If `numbers` is not given, those are all columns after the name. Rows of `marked` stand out.
    """
    first = name + 1 if numbers is None else numbers
    sides = ["number" if column >= first else "" for column in range(len(heads))]
    top = "".join(map(_cell, heads, sides, ["col"] * len(heads)))
    scopes = ["row" if column == name else "" for column in range(len(heads))]
    looks = (' class="fails"' if k in marked else "" for k in count())
    body = "".join(
        f"<tr{look}>{''.join(map(_cell, row, sides, scopes))}</tr>"
        for row, look in zip(rows, looks, strict=False)
    )
    if total is not None:
        body += f'<tr class="total">{"".join(map(_cell, total, sides, scopes))}</tr>'
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(text: str, side: str, scope: str) -> str:
    """Write one cell; its text is isolated so that its direction cannot spill over."""
    tag, scoped = ("th", f' scope="{scope}"') if scope else ("td", "")
    look = f' class="{side}"' if side else ""
    return f"<{tag}{scoped}{look}><bdi>{escape(text)}</bdi></{tag}>"


def bar_chart(title: str, bars: Sequence[tuple[str, float, bool]]) -> str:
    """Draw (label, value, private) as horizontal bars from zero; the others are striped."""
    longest = max((value for _, value, _ in bars if math.isfinite(value)), default=0.0) or 1.0
    told = "; ".join(f"{label}: {value:.3f}" for label, value, _ in bars)
    drawn = "".join(_bar(k, bar, longest) for k, bar in enumerate(bars))
    return (
        f'<svg height="{_ROW * len(bars)}" role="img" aria-labelledby="bars bars-d">'
        f'<title id="bars">{escape(title)}</title><desc id="bars-d">{escape(told)}</desc>'
        '<defs><pattern id="stripes" width="7" height="7" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect class="hatch" width="7" height="7"/>'
        '<line class="stripe" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>'
        f"{drawn}</svg>"
    )


def _bar(k: int, bar: tuple[str, float, bool], longest: float) -> str:
    """Draw one bar under its label, with its value at the right; widths follow the screen's."""
    label, value, private = bar
    top = k * _ROW
    width = 80 * min(max(value, 0.0) / longest, 1.0) if math.isfinite(value) else 0.0
    look = 'class="bar"' if private else 'fill="url(#stripes)"'
    mark = "" if private else f'<text class="mark" x="0" y="{top + 55}">NOT PRIVATE</text>'
    return (
        f'<text x="0" y="{top + 16}">{escape(_shorten(label))}</text>'
        f'<rect class="track" x="0" y="{top + 24}" width="80%" height="17" rx="3"/>'
        f'<rect {look} x="0" y="{top + 24}" width="{width:.2f}%" height="17" rx="3"/>'
        f'<text class="value" x="100%" y="{top + 38}" text-anchor="end">{value:.3f}</text>{mark}'
    )


def _shorten(label: str) -> str:
    """Cut a label that would run out of the picture; the table has it whole."""
    return label if len(label) <= 36 else label[:35] + "…"
