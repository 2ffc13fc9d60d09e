"""The figure of lists, and the peers of benchmarks/lists.py."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmarks.lists_figure import ListPoint, draw_lists

import tacit
from tacit.errors import ConfigError
from tacit.evaluation import Estimate

ROOT = Path(__file__).parents[1]
POINTS = [ListPoint(e, Estimate(r, r - 0.01, r + 0.02)) for e, r in ((0.1, 0.2), (None, 0.4))]


def test_a_figure_names_every_method_and_peer(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "lists.svg"
    draw_lists(path, {"ours": POINTS, "theirs": POINTS[:1]}, {"EASE": 0.3}, "Lists")
    text = path.read_text()
    for words in ("ours", "theirs", "EASE, no privacy", "recall@20", "NOT PRIVATE", "none"):
        assert words in text
    first = path.read_bytes()
    draw_lists(path, {"ours": POINTS, "theirs": POINTS[:1]}, {"EASE": 0.3}, "Lists")
    assert path.read_bytes() == first
    draw_lists(tmp_path / "lists.png", {"ours": POINTS}, {}, "Lists")
    assert (tmp_path / "lists.png").read_bytes()[:4] == b"\x89PNG"


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ConfigError, match=r"ends in \.svg or \.png"):
        draw_lists(tmp_path / "lists.pdf", {"ours": POINTS}, {}, "Lists")
    with pytest.raises(ConfigError, match="curves"):
        draw_lists(tmp_path / "lists.png", {"ours": []}, {}, "Lists")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import list_peers

    yield list_peers
    del sys.modules["list_peers"]


def test_ease_is_a_ridge_regression_of_every_item_on_the_others(peers: ModuleType) -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((50, 6)) < 0.4).astype(float)
    weights = peers.ease_weights(rows.T @ rows, 3.0)
    for item in range(6):
        others = [at for at in range(6) if at != item]
        x = rows[:, others]
        by_hand = np.linalg.solve(x.T @ x + 3.0 * np.eye(5), x.T @ rows[:, item])
        assert weights[others, item] == pytest.approx(by_hand)
        assert weights[item, item] == 0.0


def test_ease_scores_liked_items_and_lists_nothing_rated(peers: ModuleType) -> None:
    """Items 0 and 1 go together; who likes 0 is shown 1, who rated 0 badly is shown neither."""
    users = np.repeat(np.arange(40), 2)
    items = np.concatenate([[0, 1] if user % 2 else [2, 3] for user in range(40)])
    catalogue = tacit.Catalogue(list(range(4)))
    options = {"rating_range": (1, 5), "catalogue": catalogue}
    train = tacit.Ratings.from_arrays(users, items, np.full(80, 5.0), **options)
    model = peers.ease(train, 4.0)({"rows": "liked", "penalty": 1.0})
    new = tacit.Ratings.from_arrays([0, 1, 1], [0, 0, 3], [5.0, 1.0, 5.0], **options)
    _, lists = next(model.recommend_rows(new, 3))
    assert lists[0, 0] == 1
    assert lists[1, 0] == 2
    assert 0 not in lists[1]


def test_tuning_finds_the_best_of_a_hill_and_says_where_the_grid_ends(peers: ModuleType) -> None:
    grid = {"rows": ("liked", "rated"), "a": (1, 2, 3, 4, 5), "b": (10, 20, 30)}

    def quality(settings: dict[str, Any]) -> float:
        """In the middle of the grid "liked" is better, at the top of its hill "rated" is."""
        hill = (settings["a"] - 4) ** 2 + (settings["b"] - 30) ** 2
        return 1.0 - 0.1 * hill if settings["rows"] == "rated" else 0.0 - 0.001 * hill

    best, tried = peers.tuned(grid, quality)
    assert best == {"rows": "rated", "a": 4, "b": 30}
    assert tried < 30
    assert peers.at_the_end(grid, best) == ["b"]


def test_without_implicit_the_benchmark_can_tell(
    peers: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "implicit", None)
    monkeypatch.delitem(sys.modules, "implicit.als", raising=False)
    assert not peers.has_implicit()
