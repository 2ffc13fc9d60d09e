import re
from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace

import pytest

from tacit.accounting.budget import PrivacyBudget, Sensitivity
from tacit.accounting.certificate import Certificate
from tacit.accounting.ledger import Ledger
from tacit.accounting.promise import rounded_down, rounded_up
from tacit.data.catalogue import Catalogue
from tacit.evaluation import (
    Accuracy,
    Calibration,
    Estimate,
    NewUserRanking,
    Ranking,
    Reliability,
)
from tacit.reporting.html import write_report
from tests.conftest import named

HOSTILE = (
    "<script>alert('x')</script><img src=http://evil.example/a.png onerror=alert(1)> & \"quote\""
)
TITLES = ["The Quiet Otter", HOSTILE, "$promise ${public} %s {0}", "\u202egnirts\x00\ud800"]
ACCURACIES = [
    ("This model", Accuracy(0.75, 0.6, 1234, 321, 7), True),
    ("Exact item means", Accuracy(0.9, 0.7, 1234, 321, 7), False),
]
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """Collects tags and text, and fails on tags that do not nest."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def model_of(budget: PrivacyBudget | None, public: dict[str, str] | None = None) -> SimpleNamespace:
    ledger = Ledger(budget)
    for name, share in (("item means", 0.2), ("round <1>", 0.8)):
        bound = Sensitivity(add_remove=3.0, replace=6.0)
        ledger.reserve(named(name), bound, share=share)
        ledger.spend(named(name), bound)
    certificate = Certificate.of(ledger, public or {"catalogue": "a <public> file"}, "exact", ())
    return SimpleNamespace(certificate=certificate, catalogue=Catalogue([10, 11], TITLES[:2]))


def written(tmp_path, **changes) -> str:
    arguments = {
        "model": model_of(PrivacyBudget(epsilon=1.25, delta=1e-6)),
        "accuracies": ACCURACIES,
        "person": {10: 4.5, 11: 0.5, 99: 3.0},
        "recommendations": [
            SimpleNamespace(item=12, title=TITLES[2], score=4.756, choice=None),
            SimpleNamespace(item=13, title=TITLES[3], score=4.2, choice=0.0123),
        ],
    }
    path = tmp_path / "report.html"
    write_report(path, **(arguments | changes))
    return path.read_text("utf-8")


@pytest.fixture
def source(tmp_path) -> str:
    return written(tmp_path)


@pytest.fixture
def page(source) -> Page:
    return Page(source)


def test_hostile_titles_are_shown_as_text_and_never_as_markup(source, page):
    assert page.all("script") == []
    assert page.all("img") == []
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert HOSTILE in page.text
    assert "$promise ${public} %s {0}" in page.text
    assert "\u202egnirts\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}" in page.text
    assert "\x00" not in source
    assert "round <1>" in page.text
    assert "a <public> file" in page.text


def test_hostile_labels_stay_text_in_the_chart_and_the_table(tmp_path):
    accuracies = [("<b>bold</b> & co", ACCURACIES[0][1], False), *ACCURACIES]
    page = Page(written(tmp_path, accuracies=accuracies))
    assert len(page.all("b")) == 2  # epsilon and delta
    assert "<b>bold</b> & co" in page.text
    assert "<b>bold</b> & co (NOT PRIVATE)" in page.text


def test_titles_cannot_turn_the_direction_of_what_follows(source):
    for text in re.findall(r"<t[dh](?: [^>]*)?>(.*?)</t[dh]>", source):
        assert text.startswith("<bdi>")
        assert text.endswith("</bdi>")


def test_the_page_loads_nothing(tmp_path):
    recommendations = [SimpleNamespace(item=10, title="The Quiet Otter", score=4.0, choice=None)]
    source = written(tmp_path, person={10: 4.5}, recommendations=recommendations)
    for sign in ("http:", "https:", "//", "@import", "<link", "<script", "src=", "href="):
        assert sign not in source.lower(), sign
    assert re.findall(r"url\(([^)]*)\)", source) == ["#stripes"]
    policy = [m for m in Page(source).all("meta") if m.get("http-equiv")]
    assert policy[0]["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_promise_is_told_in_full(page):
    certificate = model_of(PrivacyBudget(epsilon=1.25, delta=1e-6)).certificate
    assert "Epsilon 1.25" in page.words
    assert "Delta 10⁻⁶" in page.words
    for sentence in certificate.promise():
        told = sentence.removeprefix("Not covered: ")
        assert told[1:] in page.words
    assert "What the promise does not cover" in page.words
    assert "replace" in page.words


def test_every_release_is_listed_with_its_cost(page):
    certificate = model_of(PrivacyBudget(epsilon=1.25, delta=1e-6)).certificate
    for entry in certificate.releases:
        drawn = f"{rounded_up(entry.sensitivity, 4)} {rounded_down(entry.noise_sd, 4)}"
        row = f"{entry.name} {drawn} {rounded_up(entry.mu, 4)}"
        assert row in page.words
    assert f"(costs add as squares) {rounded_up(certificate.mu, 4)}" in page.words
    assert "catalogue a <public> file" in page.words


def test_accuracy_is_labelled_not_private(page):
    assert "How well it predicts NOT PRIVATE" in page.words
    assert "This model 0.7500 0.6000" in page.words
    assert "Exact item means (NOT PRIVATE) 0.9000 0.7000" in page.words
    assert "1,234 held-out ratings of 321 people" in page.words
    assert "7 more were left out" in page.words


def test_bars_are_as_long_as_errors_and_only_private_ones_are_plain(page):
    bars = [r for r in page.all("rect") if r.get("class") == "bar" or r.get("fill")]
    widths = [float(bar["width"].rstrip("%")) for bar in bars]
    assert widths[0] / widths[1] == pytest.approx(0.75 / 0.9, abs=1e-3)
    assert [bar.get("fill") for bar in bars] == [None, "url(#stripes)"]
    assert "This model: 0.750; Exact item means: 0.900" in page.words


def test_the_person_and_her_list_have_titles(page):
    assert "The Quiet Otter 4.5" in page.words
    assert "99 3.0" in page.words  # an item that the catalogue does not know
    assert "1 $promise ${public} %s {0} 4.76" in page.words


def test_a_model_without_privacy_says_so_first(tmp_path):
    page = Page(written(tmp_path, model=model_of(None)))
    words = page.words
    assert words.index("This model is not private") < words.index("What is promised")
    assert "What is promised NOT PRIVATE" in words
    assert "keep each person" not in words
    assert "Epsilon" not in words
    assert "round <1> 6 0 –" in words


def test_nothing_measured_nobody_and_nothing_public(tmp_path):
    model = model_of(PrivacyBudget(epsilon=0.5))
    model.certificate = SimpleNamespace(
        to_json=lambda: {**model_of(PrivacyBudget(0.5)).certificate.to_json(), "public": {}}
    )
    page = Page(written(tmp_path, model=model, accuracies=[], person={}, recommendations=[]))
    assert "Nothing was measured" in page.words
    assert "What was taken as public Nothing." in page.words


def test_warnings_and_algorithm_of_a_certificate_are_shown(tmp_path):
    model = model_of(PrivacyBudget(epsilon=0.5))
    facts = model.certificate.to_json() | {
        "warnings": ["<mind> this"],
        "algorithm": "frank-wolfe",
        "settings": {"rounds": 8, "residual_clip": 0.125, "rank": None},
    }
    model.certificate = SimpleNamespace(to_json=lambda: facts)
    page = Page(written(tmp_path, model=model))
    assert "Warnings <mind> this" in page.words
    assert "frank-wolfe" in page.words
    assert "rounds 8, residual_clip 0.125, rank by rule" in page.words


def test_the_page_can_be_read_by_a_screen_reader(page):
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table")) == 4
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    labelled = [a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a]
    assert len(labelled) == 6
    assert all(name in ids for names in labelled for name in names.split())


def test_lists_and_stds_are_shown_if_they_were_measured(tmp_path, page):
    tenths = (Reliability(0.5, 0.45, 0.61, 20), Reliability(0.75, 0.7, 0.72, 20))
    measures = [
        Ranking(0.1234, 0.25, 0.9, 1200, 3400, 10, 3.65),
        Calibration(0.7, 0.96, 1.1, 0.69, 0.955, 0.98, tenths, 40, 40, 0),
    ]
    more = Page(written(tmp_path, measures=measures))
    assert "Lists of 10 for 3,400 people. 1,200 of them have a held-out rating" in more.words
    assert {"12.3 %", "25.0 %", "90.0 %", "0.610", "0.450"} <= set(more.text)
    assert "70.0 % of ratings are within one std of the prediction, and 96.0 %" in more.words
    assert len(more.all("caption")) == len(more.all("table")) == 6
    assert more.words.index("NOT PRIVATE. These figures") < more.words.index("Lists of 10")
    assert "Uncertainty" not in page.words


def test_lists_for_new_users_are_shown_with_their_intervals(tmp_path, page):
    share = Estimate(0.3, 0.25, 0.35)
    found = NewUserRanking(
        recall_20=Estimate(0.4321, 0.41, 0.45),
        ndcg_10=share,
        ndcg_100=share,
        coverage_20=0.87,
        popularity_20=share,
        popularity_held_out=share,
        users=1234,
        not_counted=5,
        skipped=6,
        relevant=3.8,
    )
    more = Page(written(tmp_path, measures=[found]))
    assert "43.2 % (41.0 % to 45.0 %)" in more.text
    assert "Lists for 1,234 people who were not in the fit" in more.words
    assert "87.0 %" in more.text
    assert more.words.index("NOT PRIVATE. These figures") < more.words.index("Lists for new people")
    assert "Lists for new people" not in page.words


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_has_enough_contrast_in_light_and_dark(source):
    themes = [
        dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in source.split(":root")[1:3]
    ]
    on = {
        "card": ("ink", "soft", "warn", "calm"),
        "paper": ("ink", "soft"),
        "calm-wash": ("soft", "calm"),
        "warn-wash": ("ink", "warn"),
    }
    assert luminance(themes[0]["card"]) > 0.5 > luminance(themes[1]["card"])
    for theme in themes:
        for ground, inks in on.items():
            assert all(contrast(theme[ink], theme[ground]) >= 4.5 for ink in inks)
        assert all(contrast(theme[bar], theme["card"]) >= 3 for bar in ("bar", "warn-bar"))
