"""Public features of items: how they are read, and what a model makes of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks.item_features import World, errors, made, three_models

import tacit
from tacit.data.features import FeatureColumn, ItemFeatures
from tacit.models.item_features import design_matrix
from tacit.models.item_regression import ItemRegression, fit_regressions
from tacit.models.latent import LatentFactorRule

TABLE: dict[str, Any] = {
    "year": [1999, None, 2004],
    "genre": ["drama|war", "war", ""],
    "short": [True, False, None],
    "text": [[0.5, 1.0], [2.0, 3.0], None],
    "tags": [["x"], ["y", "x"], None],
}
NAMES = ["year", "drama", "war", "short", "0", "1", "x", "y"]
VALUES = [
    [1999.0, 1, 1, 1, 0.5, 1, 1, 0],
    [np.nan, 0, 1, 0, 2, 3, 1, 1],
    [2004, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan],
]


class TestReading:
    """Tables in, columns of numbers out."""

    @pytest.mark.parametrize("form", [dict, pl.DataFrame, pl.LazyFrame, pd.DataFrame])
    def test_every_form_gives_the_same(self, form: Any) -> None:
        table = form(TABLE) if form is not pd.DataFrame else pl.DataFrame(TABLE).to_pandas()
        features = tacit.Catalogue([7, 8, 9], features=table).features
        assert features is not None
        assert [column.label or column.name for column in features.columns] == NAMES
        assert np.array_equal(features.values, VALUES, equal_nan=True)
        assert features.names == list(TABLE)

    def test_a_matrix_is_a_vector_for_each_item(self) -> None:
        made = ItemFeatures.of({"embedding": np.arange(6.0).reshape(3, 2)}, 3)
        assert made.values.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert made.columns[1] == FeatureColumn("embedding", "vector", "1")

    def test_other_columns(self) -> None:
        """A category that is not known here is 0; a feature that is not here is missing."""
        made = ItemFeatures.of({"genre": ["war", None]}, 2)
        wanted = [FeatureColumn("genre", "category", label) for label in ("drama", "war")]
        found = made.aligned([*wanted, FeatureColumn("year", "number")])
        nan = np.nan
        assert np.array_equal(found, [[0, 1, nan], [nan, nan, nan]], equal_nan=True)

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (3, "features=int: expected a polars or pandas frame"),
            ({}, "features: no columns"),
            ({"year": [1, 2]}, "'year' has 2 values for 3 items"),
            ({"year": [1.0, np.inf, 2.0]}, "'year' has 1 infinite values"),
            ({"text": [[1.0], [1.0, 2.0], None]}, "vectors of different lengths"),
            ({"when": pl.Series([None, None, None], dtype=pl.Date)}, "of the type Date"),
            ({f"n{k}": [1, 2, 3] for k in range(1001)}, "1001 columns"),
        ],
    )
    def test_bad_tables_are_named(self, table: Any, message: str) -> None:
        with pytest.raises(tacit.DataError, match=message):
            tacit.Catalogue([1, 2, 3], features=table)

    def test_csv(self, tmp_path: Path) -> None:
        path = tmp_path / "items.csv"
        path.write_text('item,title,year,genre\n7,A,1999,drama|war\n8,B,,war\n9,"C, D",2004,\n')
        found = tacit.Catalogue.from_file(path, features=["genre", "year"])
        wanted = {name: TABLE[name] for name in ("genre", "year")}
        assert found == tacit.Catalogue([7, 8, 9], ["A", "B", "C, D"], features=wanted)  # type: ignore[arg-type]
        assert tacit.Catalogue.from_file(path).features is None
        with pytest.raises(tacit.DataError, match=r"no column 'price' .*features=\[...\]"):
            tacit.Catalogue.from_file(path, features=["price"])
        with pytest.raises(tacit.ConfigError, match="features='year': expected a list"):
            tacit.Catalogue.from_file(path, features="year")

    def test_parquet_has_vectors(self, tmp_path: Path) -> None:
        frame = pl.DataFrame({"item": [7, 8, 9], **TABLE})
        frame.write_parquet(tmp_path / "items.parquet")
        found = tacit.Catalogue.from_file(tmp_path / "items.parquet", features=list(TABLE))
        assert found == tacit.Catalogue([7, 8, 9], features=TABLE)  # type: ignore[arg-type]

    def test_equality_sees_features(self) -> None:
        one, other = (tacit.Catalogue([1], features={"year": [year]}) for year in (1, 2))  # type: ignore[arg-type]
        assert one != other
        assert one != tacit.Catalogue([1])


def drawn(
    seed: int, size: float, items: int = 300, variance: float = 0.25
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, true parameters, what was measured of them, and the variances of its noise."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((items, 4))
    true = 2.0 + features @ (size * np.array([1.0, -1.0, 1.0, -1.0]))
    true += np.sqrt(variance) * rng.standard_normal(items)
    noise = rng.exponential(1.0, items) + 0.05
    return features, true, true + np.sqrt(noise) * rng.standard_normal(items), noise


class TestRegression:
    """Empirical Bayes: how much features tell, how much is left, and how sure that is."""

    def test_it_is_the_gaussian_posterior(self) -> None:
        """Against conditioning of the joint normal distribution, with a vague prior for a."""
        features, _, measured, noise = drawn(0, 1.0, items=40)
        found = fit_regressions(features, measured, noise)[0]
        size = np.linalg.eigvalsh(np.linalg.inv(found.covariance)).min()  # at least 1/b^2
        weights = 1 / (noise + found.variance)
        gaps = features - weights @ features / weights.sum()
        gram = gaps.T @ (gaps * weights[:, None])
        prior = np.linalg.inv(found.covariance) - gram
        assert np.allclose(prior, prior[0, 0] * np.eye(4), atol=1e-8 * size)
        joint = features @ features.T / prior[0, 0] + 1e6 + found.variance * np.eye(40)
        rest = np.diag(noise) @ np.linalg.inv(joint + np.diag(noise))  # what the prior keeps
        means, variances = found.posterior(features, measured, noise)
        assert np.allclose(means, measured - rest @ measured, atol=1e-4)
        assert np.allclose(variances, noise - np.diag(rest) * noise, atol=1e-4)

    def test_variances_are_found(self) -> None:
        for variance in (0.05, 1.0):
            found = fit_regressions(*_without(drawn(1, 1.0, 1500, variance)))[0]
            assert variance / 2.5 < found.variance < 2.5 * variance

    def test_features_that_tell_nothing_change_nothing(self) -> None:
        used = 0
        for seed in range(20):
            on, without = fit_regressions(*_without(drawn(seed, 0.0)))
            used += on is not without
            assert np.any(without.covariance) == 0
        assert used <= 1

    def test_features_that_tell_something_are_used(self) -> None:
        for seed in range(20):
            on, without = fit_regressions(*_without(drawn(seed, 0.3)))
            assert on is not without

    def test_numbers_that_are_all_the_same_are_no_trouble(self) -> None:
        features, noise = np.ones((5, 2)), np.ones(5)
        found = fit_regressions(features, np.full(5, 3.0), noise)[0]
        means, variances = found.posterior(features, np.full(5, 3.0), noise)
        assert np.allclose(means, 3.0)
        assert np.isfinite(variances).all()
        assert fit_regressions(np.zeros((5, 0)), np.arange(5.0), noise)[0].coefficients.size == 0

    @pytest.mark.parametrize("known", [True, False])
    def test_variances_are_honest(self, known: bool) -> None:
        """Squared errors are as large as stated, for measured items and for new ones."""
        squares = [self._squared(seed, known, factor=1.0) for seed in range(15)]
        assert 0.85 < np.mean(squares) < 1.15

    def test_a_variance_without_the_prior_would_be_noticed(self) -> None:
        squares = [self._squared(seed, False, factor=0.0) for seed in range(15)]
        assert np.mean(squares) > 1.5

    def _squared(self, seed: int, known: bool, factor: float) -> float:
        """The mean of squared errors over variances; `factor` of t^2 is counted."""
        features, true, measured, noise = drawn(seed, 1.0, items=400)
        found: ItemRegression = fit_regressions(features[:200], measured[:200], noise[:200])[0]
        if known:
            means, variances = found.posterior(features[:200], measured[:200], noise[:200])
            return float(np.mean((means - true[:200]) ** 2 / variances))
        means, variances = found.predicted(features[200:])
        variances = variances - (1 - factor) * 0.7 * found.variance
        return float(np.mean((means - true[200:]) ** 2 / variances))


def _without(
    parts: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return parts[0], parts[2], parts[3]


def test_the_design_matrix() -> None:
    features = ItemFeatures.of(TABLE, 3)
    design = design_matrix(features, 3).columns
    year, gone = design[:, 0], design[:, 1]
    assert year.tolist() == [-1.0, 0.0, 1.0]  # variance 1; what is missing is the mean
    assert gone == pytest.approx([-1 / 3, 2 / 3, -1 / 3])
    war = design[:, 3]
    assert war.tolist() == [0.0, 0.0, 0.0]  # all that are known have it
    assert np.allclose(design.mean(axis=0), 0.0)
    longer = design_matrix(
        ItemFeatures(features.columns, np.vstack([features.values, VALUES])), 3
    ).columns
    assert np.array_equal(longer[:3], longer[3:])
    assert np.array_equal(longer[:3], design)


@pytest.fixture(scope="module")
def world() -> World:
    return made(0.8, users=1500, items=120, seed=1, per_user=25)


@pytest.fixture(scope="module")
def models(world: World) -> list[tacit.Model]:
    """Fits without and with features, with the same noise; and with cold items added later."""
    return three_models(world, 3.0, 1)


@pytest.fixture(scope="module")
def pair(models: list[tacit.Model]) -> tuple[tacit.Model, tacit.Model]:
    return models[0], models[1]


def cold_error(model: tacit.Model, world: World) -> float:
    return errors(model, world)["cold"]


class TestFit:
    """Features in a fit: the same releases, and better items where features tell of them."""

    def test_cold_items_gain(self, world: World, pair: tuple[tacit.Model, tacit.Model]) -> None:
        without, with_features = (cold_error(model, world) for model in pair)
        assert with_features < 0.95 * without

    def test_shuffled_features_lose_nothing(
        self, world: World, pair: tuple[tacit.Model, tacit.Model]
    ) -> None:
        order = np.random.default_rng(0).permutation(len(world.catalogue))
        shuffled = tacit.Catalogue(
            world.catalogue.ids, features=world.catalogue.features.rows(order)
        )
        found = pair[0].with_items(shuffled)
        assert cold_error(found, world) < 1.01 * cold_error(pair[0], world)

    def test_nothing_is_released_for_it(self, pair: tuple[tacit.Model, tacit.Model]) -> None:
        one, other = (model.certificate for model in pair)
        assert one.releases == other.releases
        line = other.public["item features"]
        assert line.startswith("genre, year, vector, public facts given by the caller;")
        assert line.endswith("post-processing of the releases and costs nothing")
        assert "item features" not in one.public
        assert line in pair[1].explain()

    def test_afterwards_is_the_same_as_in_the_fit(
        self, world: World, pair: tuple[tacit.Model, tacit.Model]
    ) -> None:
        later = pair[0].with_items(world.catalogue)
        assert later.catalogue == pair[1].catalogue
        assert np.array_equal(later.predict({3: 4.0}), pair[1].predict({3: 4.0}))

    def test_other_methods_say_that_they_do_not_use_them(self, world: World) -> None:
        with pytest.warns(tacit.TacitWarning, match="item features are not used: moments"):
            model = tacit.fit(world.train, tacit.Moments(), epsilon=1.0)
        assert model.catalogue.features is None
        with pytest.raises(tacit.ConfigError, match=r"with_items: this model \(moments\)"):
            model.with_items(world.catalogue)

    def test_the_most_rated_items_keep_their_features(self, world: World) -> None:
        model = tacit.fit(world.train, epsilon=3.0, top_items=50)
        places = world.catalogue.positions(model.catalogue.ids)
        assert model.catalogue == world.catalogue.rows(places)


class TestNewItems:
    """with_items: items that were not in the fit."""

    NEW = tacit.Catalogue(
        [1000, 1001, 3],
        features={"genre": ["g1", None, "g2"], "year": [0.5, None, 1.0]},  # type: ignore[arg-type]
    )

    def test_old_items_stay_as_they_are(self, pair: tuple[tacit.Model, tacit.Model]) -> None:
        model = pair[1].with_items(self.NEW)
        own = {3: 4.5, 7: 1.0, 20: 3.0}
        count = len(pair[1].catalogue)
        assert model.catalogue.ids.to_list() == [*range(count), 1000, 1001]
        for mine in (own, {}):
            after = model.predict(mine, return_std=True)
            for before, now in zip(pair[1].predict(mine, return_std=True), after, strict=True):
                assert np.allclose(before, now[:count], rtol=0, atol=1e-5)
                assert np.isfinite(now).all()
        assert model.verify().holds == pair[1].verify().holds
        assert "items added" in model.certificate.public
        again = model.with_items(self.NEW)
        assert again.catalogue == model.catalogue
        assert np.array_equal(again.predict(own), model.predict(own))

    def test_one_by_one_is_the_same_as_together(self, pair: Any) -> None:
        together = pair[1].with_items(self.NEW)
        one_by_one = pair[1]
        for at in range(2):
            one_by_one = one_by_one.with_items(self.NEW.rows(np.array([at])))
        assert one_by_one.certificate == together.certificate
        parts = (model.rule.parts()[0] for model in (together, one_by_one))
        for one, other in zip(*(part.values() for part in parts), strict=True):
            assert np.allclose(one, other, rtol=1e-12, atol=0)

    def test_they_are_less_sure_and_can_be_recommended(
        self, pair: tuple[tacit.Model, tacit.Model]
    ) -> None:
        model = pair[1].with_items(self.NEW)
        stds = model.predict({3: 4.5}, return_std=True)[1]
        assert stds[-1] > stds[-2]  # nothing is known of its features
        assert stds[-2] > 0.9 * np.median(stds[:-2])  # noise dims what is known of the others
        found = model.recommend({3: 4.5}, candidates=[1000, 1001], because=True)
        assert {row.item for row in found} == {1000, 1001}
        assert all(row.choice is not None and row.choice > 0 for row in found)
        assert np.isfinite(model.predict({1000: 5.0})).all()

    def test_predictions_of_new_items_are_good_and_their_stds_honest(
        self, world: World, models: list[tacit.Model]
    ) -> None:
        """Items that no one rated are left out of the fit and added afterwards."""
        found = errors(models[2], world)
        assert found["cold"] < 0.95 * cold_error(models[0], world)
        assert 0.85 < found["error/std"] < 1.15

    def test_bad_catalogues_are_named(self, pair: tuple[tacit.Model, tacit.Model]) -> None:
        with pytest.raises(tacit.ConfigError, match=r"catalogue=list: expected tacit\.Catalogue"):
            pair[0].with_items([1])  # type: ignore[arg-type]
        with pytest.raises(
            tacit.ConfigError, match="it has no features, and neither has the model"
        ):
            pair[0].with_items(tacit.Catalogue([1000]))
        alone = tacit.Catalogue([1000], features={"year": [1.0]})  # type: ignore[arg-type]
        with pytest.raises(tacit.ConfigError, match="no feature of any item of the model"):
            pair[0].with_items(alone)

    def test_a_model_without_measurements_says_so(self, world: World, pair: Any) -> None:
        from dataclasses import replace

        bare = replace(pair[0], rule=replace(pair[0].rule, measured=None, measured_noise=None))
        with pytest.raises(tacit.ConfigError, match="fit it anew with LatentFactors"):
            bare.with_items(world.catalogue)


class TestFile:
    """Features and measurements in model files."""

    def test_they_come_back(self, pair: tuple[tacit.Model, tacit.Model], tmp_path: Path) -> None:
        model = pair[1].with_items(TestNewItems.NEW)
        model.save(tmp_path / "m.tacit")
        found = tacit.load(tmp_path / "m.tacit")
        assert found.catalogue == model.catalogue
        assert isinstance(found.rule, LatentFactorRule)
        assert np.array_equal(found.rule.measured, model.rule.measured)  # type: ignore[attr-defined]
        more = tacit.Catalogue([2000], features={"genre": ["g3"]})  # type: ignore[arg-type]
        one, other = (each.with_items(more).predict({3: 5.0}) for each in (model, found))
        assert np.array_equal(one, other)

    def test_a_flipped_bit_is_noticed(self, pair: Any, tmp_path: Path) -> None:
        path = tmp_path / "m.tacit"
        pair[1].save(path)
        content = bytearray(path.read_bytes())
        length = int.from_bytes(content[:8], "little")
        header = content[8 : 8 + length].decode()
        for name in ("features.values", "rule.measured", "rule.measured_noise"):
            begin = int(header.split(f'"{name}"')[1].split('"data_offsets":[')[1].split(",")[0])
            damaged = bytearray(content)
            damaged[8 + length + begin + 3] ^= 1
            path.write_bytes(damaged)
            with pytest.raises(tacit.ModelFileError):
                tacit.load(path)

    @pytest.mark.parametrize("case", ["half", "shape", "negative", "vast", "too many"])
    def test_impossible_measurements_are_refused(self, pair: Any, case: str) -> None:
        arrays, settings = pair[1].rule.parts()
        noise = arrays["measured_noise"]
        wrong: dict[str, Any] = {
            "half": {name: a for name, a in arrays.items() if name != "measured"},
            "shape": {**arrays, "measured": arrays["measured"][:, 1:]},
            "negative": {**arrays, "measured_noise": -noise},
            "vast": {**arrays, "measured_noise": noise * 1e40},
            "too many": {
                **arrays,
                "measured": np.tile(arrays["measured"], (2, 1)),
                "measured_noise": np.tile(noise, (2, 1)),
            },
        }
        assert LatentFactorRule.from_parts(arrays, settings).measured is not None
        with pytest.raises(tacit.ModelFileError):
            LatentFactorRule.from_parts(wrong[case], settings)

    @pytest.mark.parametrize("old", ["files/format-1", "old_models/moments"])
    def test_old_files_have_none(self, old: str) -> None:
        model = tacit.load(Path(__file__).parent / f"{old}.tacit")
        assert model.catalogue.features is None
