import math

import numpy as np
import pytest

import tacit
from tests.conftest import ratings_for


def directions(model: tacit.Model) -> np.ndarray:
    return model.rule.parts()[0]["directions"]


def factors(model: tacit.Model) -> np.ndarray:
    return model.rule.parts()[0]["factors"]


def test_privacy_must_be_asked_for_or_declined_by_name(ratings: tacit.Ratings) -> None:
    with pytest.raises(tacit.ConfigError, match="epsilon"):
        tacit.fit(ratings)
    assert not tacit.fit(ratings, budget=None).private
    assert tacit.fit(ratings, epsilon=1.0).private


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 1.0, "budget": None}, "not both"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"budget": 1.0}, "PrivacyBudget"),
        ({"epsilon": 1.0, "numerics": "float"}, "numerics='float'"),
        ({"epsilon": 1.0, "noise_seed_unsafe": -1}, "noise_seed_unsafe"),
        ({"epsilon": 1.0, "neighbours": "other"}, "neighbours='other'"),
    ],
)
def test_bad_arguments_are_named(
    ratings: tacit.Ratings, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(tacit.ConfigError, match=message):
        tacit.fit(ratings, **arguments)  # type: ignore[arg-type]


def test_something_else_than_ratings() -> None:
    with pytest.raises(tacit.ConfigError, match="from_file"):
        tacit.fit([[1, 2, 3]], epsilon=1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rounds", 1), ("rounds", 2.5), ("rounds", True), ("nuclear_norm", 0), ("row_norm", -1.0),
        ("residual_clip", 2.5), ("row_norm", math.inf), ("max_ratings", 0), ("max_ratings", "all"),
        ("beta", 1.0), ("step", "3/t"), ("shift", "no"), ("item_means", 0.95), ("schedule", 99),
        ("schedule", (1.0, 2.0)),
        ("schedule", "fast"),
    ],
)  # fmt: skip
def test_every_setting_is_checked(setting: str, value: object) -> None:
    with pytest.raises(tacit.ConfigError, match=setting):
        tacit.FrankWolfe(**{setting: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("means", [0.0, 0.3])
@pytest.mark.parametrize("schedule", [0.0, 1.5, (1.0, 2.0, 3.0, 4.0), "completed"])
def test_the_whole_budget_is_spent_and_no_more(
    ratings: tacit.Ratings, relation: str, means: float, schedule: float
) -> None:
    config = tacit.FrankWolfe(rounds=5, item_means=means, schedule=schedule)
    model = tacit.fit(ratings, config, epsilon=0.7, neighbours=relation)
    assert model.certificate.exact_epsilon == pytest.approx(0.7, rel=1e-6)
    assert model.verify().holds


def test_the_papers_accounting_spends_less_than_it_claims(ratings: tacit.Ratings) -> None:
    budget = tacit.PrivacyBudget(1.0, accounting="paper")
    config = tacit.FrankWolfe(rounds=6, row_norm=2.0)
    model = tacit.fit(ratings, config, budget=budget)
    sigma = 4.0 * math.sqrt(64 * 6 * math.log(1e6)) / 1.0
    assert [e.noise_sd for e in model.certificate.releases] == pytest.approx([sigma] * 5)
    assert model.certificate.exact_epsilon < 0.9


def test_noise_differs_from_fit_to_fit_and_a_seed_undoes_the_promise(
    ratings: tacit.Ratings,
) -> None:
    one, two = (tacit.fit(ratings, epsilon=1.0) for _ in range(2))
    assert not np.array_equal(factors(one), factors(two))
    seeded = [tacit.fit(ratings, epsilon=1.0, noise_seed_unsafe=5) for _ in range(2)]
    assert np.array_equal(factors(seeded[0]), factors(seeded[1]))
    assert not seeded[0].private
    assert "NOT PRIVATE" in seeded[0].certificate.text()
    assert not seeded[0].verify().holds


def test_floating_point_noise_is_not_called_private(ratings: tacit.Ratings) -> None:
    model = tacit.fit(ratings, epsilon=1.0, numerics="idealised")
    assert not model.private
    assert "floating point" in model.certificate.text()


def test_a_delta_that_protects_nobody_is_warned_of() -> None:
    with pytest.warns(tacit.TacitWarning, match="number of users"):
        tacit.fit(ratings_for(0, users=2000), epsilon=1.0, delta=1e-3)


def test_a_huge_budget_comes_to_the_form_without_noise(ratings: tacit.Ratings) -> None:
    config = tacit.FrankWolfe(rounds=5, shift=False, item_means=0.2)
    free = tacit.fit(ratings, config, budget=None)
    paid = tacit.fit(ratings, config, epsilon=10_000.0, noise_seed_unsafe=1)
    (_, exact), (_, noisy) = next(free.predict_rows(ratings)), next(paid.predict_rows(ratings))
    assert np.sqrt(np.mean((exact - noisy) ** 2)) < 0.2
    poor = tacit.fit(ratings, config, epsilon=0.01)
    (_, poorest) = next(poor.predict_rows(ratings))
    assert np.sqrt(np.mean((exact - poorest) ** 2)) > 0.2


def test_releases_do_not_depend_on_threads_or_the_order_of_users(ratings: tacit.Ratings) -> None:
    order = np.random.default_rng(0).permutation(ratings.n_users)
    shuffled = ratings.take_rows(order)
    config = tacit.FrankWolfe(rounds=5, item_means=0.1, max_ratings=4)
    fits = [
        tacit.fit(r, config, epsilon=2.0, noise_seed_unsafe=1, engine=tacit.ThreadEngine(threads))
        for r, threads in ((ratings, 1), (ratings, 3), (shuffled, 2))
    ]
    assert np.array_equal(directions(fits[0]), directions(fits[1]))
    assert np.array_equal(directions(fits[0]), directions(fits[2]))


def test_an_engine_can_be_used_again_for_other_ratings() -> None:
    engine = tacit.ThreadEngine(2)
    config = tacit.FrankWolfe(rounds=4)
    first = tacit.fit(ratings_for(1), config, epsilon=1.0, noise_seed_unsafe=1, engine=engine)
    tacit.fit(ratings_for(2), config, epsilon=1.0, noise_seed_unsafe=1, engine=engine)
    again = tacit.fit(ratings_for(1), config, epsilon=1.0, noise_seed_unsafe=1, engine=engine)
    assert np.array_equal(directions(first), directions(again))


def test_budget_exceeded_comes_before_any_noise(
    ratings: tacit.Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.trusted import mechanism

    def never(*_: object) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(mechanism, "floor_normals", never)
    budget = tacit.PrivacyBudget(12.0, accounting="paper")
    with pytest.raises(tacit.BudgetExceeded):
        tacit.fit(ratings, tacit.FrankWolfe(rounds=50), budget=budget, noise_seed_unsafe=1)


def test_the_number_of_users_is_protected_under_add_remove() -> None:
    ratings = ratings_for(0, users=937)
    model = tacit.fit(ratings, epsilon=1.0, neighbours="add_remove")
    content = str(model.certificate.to_json())
    assert "number of users" not in model.certificate.public
    assert " 937" not in content
    assert "'937" not in content
    assert "spreads" in [entry.name for entry in model.certificate.releases]  # counts users too
    assert "number of users" in tacit.fit(ratings, epsilon=1.0).certificate.public


def test_a_catalogue_taken_from_the_ratings_is_listed_as_an_assumption() -> None:
    own = tacit.Ratings.from_arrays([1, 1, 2, 2], [5, 6, 5, 7], [1, 2, 3, 4], rating_range=(1, 5))
    assert "ASSUMED" in tacit.fit(own, epsilon=1.0).certificate.public["catalogue"]
    public = tacit.fit(ratings_for(0), epsilon=1.0).certificate.public["catalogue"]
    assert "public list" in public


def test_progress_counts_planned_releases_only(ratings: tacit.Ratings) -> None:
    seen: list[tuple[int, int]] = []
    tacit.fit(
        ratings,
        tacit.FrankWolfe(rounds=4),
        epsilon=1.0,
        progress=lambda done, planned: seen.append((done, planned)),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_users_with_no_rating_of_the_catalogue_are_no_trouble() -> None:
    catalogue = tacit.Catalogue(["a", "b", "c"], public=True)
    ratings = tacit.Ratings.from_arrays(
        [1, 1, 2, 3, 3], ["a", "b", "other", "b", "c"], [1, 2, 3, 4, 5],
        rating_range=(1, 5), catalogue=catalogue, unknown_items="drop",
    )  # fmt: skip
    assert ratings.n_users == 3
    model = tacit.fit(ratings, epsilon=1.0)
    assert np.isfinite(model.predict({})).all()


def test_it_learns(ratings: tacit.Ratings) -> None:
    """Without noise, predictions of unseen ratings beat everyone's own mean by far."""
    many = ratings_for(3, users=3000, per_user=8)
    model = tacit.fit(many, tacit.FrankWolfe(rounds=30, nuclear_norm=300.0), budget=None)
    (_, scores) = next(model.predict_rows(many))
    rng = np.random.default_rng(3)
    tastes = rng.standard_normal((3000, 2)) @ rng.standard_normal((2, 15))
    truth = np.clip(np.round(2 * (3 + tastes)) / 2, 0.5, 5)
    means = np.array(
        [many.values[a:b].mean() for a, b in zip(many.indptr, many.indptr[1:], strict=False)]
    )
    error = np.sqrt(np.mean((scores - truth) ** 2))
    baseline = np.sqrt(np.mean((means[:, None] - truth) ** 2))
    assert error < 0.8 * baseline
