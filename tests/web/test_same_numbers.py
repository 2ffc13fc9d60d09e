"""tacit.js gives the numbers that Python gives: every kind of local rule, and hard cases."""

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.models.latent import LatentFactorRule
from tacit.models.registry import _KINDS
from tests.conftest import ratings_for
from tests.contracts.test_algorithms import CASES, QUICK
from tests.web.node import answers, needs_node

pytestmark = needs_node

OLD = Path(__file__).parents[1] / "old_models"
RELATIVE = 1e-5
SINGLE = {"filling"}  # Python maps rows in single precision there, as fits do
UNKNOWN = "no such item"


@dataclass
class Asked:
    """A model, the questions, and what tacit.js said."""

    model: tacit.Model
    questions: list[dict[str, Any]]
    said: dict[str, Any]


def rows_of(model: tacit.Model) -> dict[str, list[list[Any]]]:
    """Own ratings of the hard kinds: none, one, a few, unknown ones among them, all."""
    rng = np.random.default_rng(5)
    lo, hi = model.rating_range
    ids = model.catalogue.ids.to_list()
    values = np.round(rng.uniform(lo, hi, len(ids)), 2).clip(lo, hi).tolist()
    pairs = [[item, value] for item, value in zip(ids, values, strict=True)]
    few = [pairs[at] for at in rng.choice(len(ids), min(6, len(ids)), replace=False)]
    return {
        "none": [],
        "one": pairs[3:4],
        "one, the lowest": [[ids[0], lo]],
        "few": few,
        "few, and unknown items": [*few, [UNKNOWN, hi]],
        "all the same": [[item, hi] for item in ids[:5]],
        "all": pairs,
    }


def ask(folder: Path, models: dict[str, tacit.Model]) -> dict[str, Asked]:
    jobs, questions = [], {}
    for at, (name, model) in enumerate(models.items()):
        file = folder / f"{at}.tacit"
        model.save(file)
        questions[name] = [{"own": own, "unknown": UNKNOWN} for own in rows_of(model).values()]
        jobs.append({"file": str(file), "questions": questions[name]})
    said = answers(folder, jobs)
    return {
        name: Asked(model, questions[name], told)
        for (name, model), told in zip(models.items(), said, strict=True)
    }


@cache
def fitted() -> dict[str, tacit.Model]:
    """A model of every algorithm, with a budget and without."""
    ratings = ratings_for(1, users=250, items=25, per_user=9)
    models = {}
    for name in sorted(QUICK):
        models[name] = tacit.fit(ratings, CASES[name], epsilon=4.0, delta=1e-4)
        models[f"{name}, no noise"] = tacit.fit(ratings, CASES[name], budget=None)
    touched = tacit.Ratings.from_arrays(
        np.repeat(np.arange(200), 6),
        np.concatenate([np.random.default_rng(u).choice(18, 6, replace=False) for u in range(200)]),
        np.ones(1200),
        implicit=True,
        catalogue=tacit.Catalogue(list(range(18))),
    )
    models["interactions"] = tacit.fit(touched, epsilon=4.0, delta=1e-4)
    models["interactions, no noise"] = tacit.fit(touched, budget=None)
    models["items added by features"] = with_more_items()
    models["drawn, many factors"] = drawn(models["latent factors"])
    models["ridge, own scale"] = tacit.fit(
        ratings, tacit.FrankWolfe(rounds=3, shift=False, local="ridge"), budget=None
    )
    return models


def drawn(like: tacit.Model) -> tacit.Model:
    """A latent factor model with several factors of both kinds, whatever a small fit finds."""
    rng, items = np.random.default_rng(9), len(like.catalogue)
    choice = rng.normal(size=(items, 4)) / items
    choice[:, 0] = np.abs(choice[:, 0]) + 1 / items
    rule = LatentFactorRule(
        factors=rng.normal(size=(items, 9)) / 3,
        offsets=3 + rng.normal(size=items) / 3,
        noise=0.3 + rng.random(items),
        choice_factors=choice,
        choice_noise=(0.5 + rng.random(items)) / items**2,
        prior=rng.normal(size=(4, 9)) / 3,
        liked=3.2,
    )
    return tacit.Model(rule, like.catalogue, like.rating_range, like.certificate, like.releases)


def with_more_items() -> tacit.Model:
    """The default, fitted with features of items, and some items that came later."""
    base = ratings_for(1, users=250, items=25, per_user=9)
    kinds = [("war", "love", "space")[at % 3] for at in range(28)]
    ids = [*base.catalogue.ids.to_list(), "new-1", "new-2", "new-3"]
    model = tacit.fit(base, epsilon=4.0, delta=1e-4)
    return model.with_items(tacit.Catalogue(ids, features={"kind": kinds}))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.errors.TacitWarning)
        old = {f"old: {path.stem}": tacit.load(path) for path in sorted(OLD.glob("*.tacit"))}
        return ask(tmp_path_factory.mktemp("web"), fitted() | old)


def assert_near(found: list[Any], wanted: np.ndarray, kind: str) -> None:
    """Relative to each number; in single precision, to the largest."""
    size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0)
    least = size if kind in SINGLE else 1e-9 * size
    numbers = np.array(found, dtype=float)
    np.testing.assert_allclose(numbers, wanted, rtol=RELATIVE, atol=RELATIVE * least)


def own_of(model: tacit.Model, question: dict[str, Any]) -> Any:
    own = question["own"]
    return [item for item, _ in own] if model.implicit else dict(map(tuple, own))


def each_answer(asked: dict[str, Asked]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.errors.UnknownItemsWarning)
        for one in asked.values():
            for question, said in zip(one.questions, one.said["answers"], strict=True):
                yield one.model, own_of(one.model, question), said


def test_every_kind_of_rule_is_tried(asked: dict[str, Asked]) -> None:
    assert {one.model.rule.kind for one in asked.values()} == set(_KINDS)
    assert all("error" not in one.said for one in asked.values())


def test_what_a_file_says_of_itself_is_read(asked: dict[str, Asked]) -> None:
    for one in asked.values():
        about, model = one.said["about"], one.model
        assert about["kind"] == model.rule.kind
        assert about["ids"] == model.catalogue.ids.to_list()
        assert about["titles"] == [model.catalogue.title(at) for at in range(len(model.catalogue))]
        assert tuple(about["ratingRange"]) == model.rating_range
        assert (about["implicit"], about["knowsStd"]) == (model.implicit, model.knows_std)
        assert about["certificate"]["private"] == model.private


def test_epsilon_is_recomputed_as_in_python(asked: dict[str, Asked]) -> None:
    for one in asked.values():
        wanted, found = one.model.certificate.verify(), one.said["verified"]
        assert found["holds"] == (wanted.holds and wanted.epsilon_recomputed is not None)
        if wanted.epsilon_recomputed is not None:
            assert found["epsilon"] == pytest.approx(wanted.epsilon_recomputed, rel=1e-6)


def test_predictions(asked: dict[str, Asked]) -> None:
    for model, own, said in each_answer(asked):
        kind = model.rule.kind
        assert_near(said["predict"], model.predict(own), kind)
        assert_near(said["unclipped"], model.predict(own, clip=False), kind)
        ids = model.catalogue.ids
        some = model.predict(own, items=[ids[1], ids[0]])
        assert_near([said["some"][0], said["some"][2]], some, kind)
        assert said["some"][1] == "NaN"


def test_stds(asked: dict[str, Asked]) -> None:
    tried = 0
    for model, own, said in each_answer(asked):
        if model.knows_std:
            assert_near(said["stds"], model.predict(own, return_std=True)[1], model.rule.kind)
            tried += 1
    assert tried > 20


def test_lists(asked: dict[str, Asked]) -> None:
    """The same items in the same order, but where scores are equal to rounding."""
    for model, own, said in each_answer(asked):
        orders = [None, "rating", "choice"] if said["lists"][1:] else [None]
        for by, found in zip(orders, said["lists"], strict=True):
            assert_same_list(model, own, by, found)
        assert len(said["all"]) == len(set(said["all"])) == len(model.catalogue)


def assert_same_list(model: tacit.Model, own: Any, by: Any, found: list[Any]) -> None:
    because = bool(found) and "because" in found[0]
    wanted = model.recommend(own, 7, by=by, because=because)
    assert len(found) == len(wanted)
    worth = model._order(by)(model._own(own))[0]
    places = model.catalogue.positions([row["item"] for row in found])
    assert_near(list(worth[places]), worth[model.catalogue.positions([w.item for w in wanted])],
                "filling")  # fmt: skip
    known = {row.item: row for row in wanted}
    for row in found:
        twin = known.get(row["item"])
        if twin is None:
            continue
        assert row["score"] == pytest.approx(twin.score, rel=RELATIVE, abs=1e-6)
        assert (row["choice"] is None) == (twin.choice is None)
        if twin.choice is not None:
            assert row["choice"] == pytest.approx(twin.choice, rel=RELATIVE)
        if because:
            assert_same_reasons(row, twin)


def assert_same_reasons(row: dict[str, Any], twin: tacit.Recommendation) -> None:
    assert twin.because is not None
    size = abs(twin.score) + max((abs(each.contribution) for each in twin.because), default=0.0)
    assert row["baseline"] == pytest.approx(twin.baseline, rel=RELATIVE, abs=1e-7 * size)
    added = {each["item"]: each["contribution"] for each in row["because"]}
    for each in twin.because:
        assert added[each.item] == pytest.approx(each.contribution, rel=RELATIVE, abs=1e-7 * size)


def test_a_wrong_number_would_be_noticed(asked: dict[str, Asked]) -> None:
    """The twin: one prediction that is off by 2e-5 of itself."""
    model, own, said = next(
        each for each in each_answer(asked) if each[0].rule.kind == "latent-factors" and each[1]
    )
    wrong = list(said["unclipped"])
    wrong[4] *= 1 + 2 * RELATIVE
    with pytest.raises(AssertionError):
        assert_near(wrong, model.predict(own, clip=False), "latent-factors")
