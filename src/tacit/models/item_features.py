r"""What public features of items add to a published model: better estimates, and new items.

It reads published numbers and features only: post-processing of the releases, which costs nothing.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.features import FeatureColumn, ItemFeatures
from tacit.errors import ConfigError
from tacit.models.item_regression import ItemRegression, fit_regressions
from tacit.models.latent import LatentFactorRule
from tacit.models.rules import Floats

if TYPE_CHECKING:
    from tacit.models.model import Model

_UNKNOWN = 1e6  # times the usual variance of choice: choosing a new item tells nothing yet
_PUBLIC = {True: "public facts given by the caller", False: "ASSUMED public, given by the caller"}
_LINE = (
    "{names}, {public}; item means and factors are drawn to what they predict, which is "
    "post-processing of the releases and costs nothing"
)
_SLOPE = 0.2  # of noise variances against doubt: 0.4 to 1 if they include it, 0 if not
_LEAST = 0.3  # of an item's noise variance: features take no more of it


class _Regressed(NamedTuple):
    """Regressions of every measured parameter, on features and without; see item_regression."""

    on_features: list[ItemRegression]
    without: list[ItemRegression]


def extended(model: "Model", given: Catalogue) -> "Model":
    """Return the model with features used, and the items added that it does not have."""
    if not isinstance(given, Catalogue):
        raise ConfigError(f"catalogue={type(given).__name__}: expected tacit.Catalogue")
    if not isinstance(model.rule, LatentFactorRule) or model.rule.measured is None:
        raise ConfigError(
            f"with_items: this model ({model.algorithm}) does not hold what item features are "
            "compared with; fit it anew with LatentFactors, the default"
        )
    catalogue = merged_catalogue(model.catalogue, given)
    features = catalogue.features
    if features is None:
        raise ConfigError("catalogue: it has no features")
    shrunk = model.catalogue.features is not None
    rule = with_features(model.rule, features, model.rating_range, shrunk=shrunk)
    line = _LINE.format(names=", ".join(features.names), public=_PUBLIC[catalogue.public])
    added = len(catalogue) - len(model.rule.measured)
    public = {**model.certificate.public, "item features": line}
    if added:
        public["items added"] = f"{added} after the fit, by their features; costs nothing"
    certificate = replace(model.certificate, public=public)
    return replace(model, rule=rule, catalogue=catalogue, certificate=certificate, digest=None)


def merged_catalogue(old: Catalogue, given: Catalogue) -> Catalogue:
    """Return the old items, in their order, and then those that are new, with their features.

    The features are those of the old catalogue if it has any, and otherwise the given ones. Old
    items keep the features that they have.
    """
    places = old.positions(given.ids)
    new = np.flatnonzero(places < 0)
    features = _merged_features(old, given, places)
    titles: Any = None
    if old.titles is not None or given.titles is not None:
        titles = _titles(old) + [_titles(given)[int(at)] for at in new]
    ids: Any = old.ids.to_list() + given.ids.gather(new).to_list()
    return Catalogue(ids, titles, old.public and given.public, features)


def _titles(catalogue: Catalogue) -> list[str | None]:
    return [None] * len(catalogue) if catalogue.titles is None else catalogue.titles.to_list()


def _merged_features(old: Catalogue, given: Catalogue, places: NDArray[np.int64]) -> ItemFeatures:
    """Return the features of old and new items in the columns of the model."""
    source = old.features or given.features
    if source is None:
        raise ConfigError(
            "catalogue: it has no features, and neither has the model; give "
            "Catalogue(..., features=...) that lists the items of the model too (on the command "
            "line: --feature NAME, a column of ITEMS)"
        )
    columns = source.columns
    known = np.full((len(old), len(columns)), np.nan)
    aligned = np.full((len(given), len(columns)), np.nan)
    if given.features is not None:
        aligned = given.features.aligned(columns)
    if old.features is not None:
        known = old.features.values
    else:
        known[places[places >= 0]] = aligned[places >= 0]
    if np.isnan(known).all():
        raise ConfigError(
            "catalogue: no feature of any item of the model is in it; list those items with their "
            "features as well, since they tell what features mean"
        )
    return ItemFeatures(columns, np.vstack([known, aligned[places < 0]]))


class Design(NamedTuple):
    """Features for a regression: the columns, and where each feature has its own, and is missing.

    Attributes:
        columns: items by numbers.
        features: for each feature its columns, and of which items it is missing.
    """

    columns: Floats
    features: list[tuple[slice, NDArray[np.bool_]]]

    def rows(self, wanted: slice) -> "Design":
        """Return the design of some of the items."""
        features = [(own, missing[wanted]) for own, missing in self.features]
        return Design(self.columns[wanted], features)

    def unknown(self, usual: "Design", coefficients: Floats) -> Floats:
        r"""Return the variance of $x_j \beta$ that comes from what is missing of $x_j$.

        It is the variance that each missing feature explains of the `usual` items.
        """
        doubt = np.zeros(len(self.columns))
        for (own, missing), (_, gone) in zip(self.features, usual.features, strict=True):
            explained = usual.columns[~gone][:, own] @ coefficients[own]
            doubt[missing] += float(np.var(explained)) if explained.size else 0.0
        return doubt


def design_matrix(features: ItemFeatures, count: int) -> Design:
    """Return features for a regression; the first `count` items say what is usual.

    All columns are less their mean. Numbers have variance 1, and vectors a mean squared norm of 1;
    categories stay 0 and 1. What is missing is the mean, and a column says which is missing.
    """
    made: list[Floats] = []
    places, start = [], 0
    for name in features.names:
        own = [k for k, column in enumerate(features.columns) if column.name == name]
        values = features.values[:, own]
        missing = np.asarray(np.isnan(values).any(axis=1))
        made.append(_design(values, missing, features.columns[own[0]], count))
        places.append((slice(start, start + made[-1].shape[1]), missing))
        start += made[-1].shape[1]
    return Design(np.hstack(made), places)


def _design(
    values: Floats, missing: NDArray[np.bool_], column: FeatureColumn, count: int
) -> Floats:
    """Return the columns of one feature."""
    known = values[:count][~missing[:count]]
    if not len(known):
        return np.zeros((len(values), 0))
    size = float(np.sqrt(np.sum(known.var(axis=0))))
    scale = size if column.kind != "category" and size > 0 else 1.0
    gaps = np.where(missing[:, None], 0.0, (values - known.mean(axis=0)) / scale)
    rate = float(np.mean(missing[:count]))
    marks = missing[:, None] - rate if 0 < rate < 1 else np.zeros((len(values), 0))
    return np.hstack([gaps, marks])


@dataclass(frozen=True)
class _Items:
    """A rule that knows what was measured, and the design matrix of its items and of new ones."""

    rule: LatentFactorRule
    measured: Floats
    noise: Floats
    design: Design

    @property
    def usual(self) -> Design:
        """The design of the items that were measured."""
        return self.design.rows(slice(0, len(self.measured)))

    def predicted(self, regression: ItemRegression, design: Design) -> tuple[Floats, Floats]:
        """Return means and variances by features alone, what is missing of them included."""
        means, variances = regression.predicted(design.columns)
        return means, variances + design.unknown(self.usual, regression.coefficients)

    def posterior(self, regression: ItemRegression, column: int) -> tuple[Floats, Floats]:
        """Return means and variances by features and by what was measured."""
        own = self.usual.columns, self.measured[:, column], self.noise[:, column]
        return regression.posterior(*own, self.usual.unknown(self.usual, regression.coefficients))

    def every_posterior(self, regressions: list[ItemRegression]) -> tuple[Floats, Floats]:
        """Return the means of every parameter, and what the doubt about all adds to a rating."""
        found = [self.posterior(each, k) for k, each in enumerate(regressions)]
        means, variances = (np.column_stack(each) for each in zip(*found, strict=True))
        return means, variances @ self.seconds

    @property
    def seconds(self) -> Floats:
        r"""The second moments of a user's factors, and 1 for means: what a doubt counts by."""
        return np.append(1.0 + np.sum(self.rule.prior**2, axis=0), 1.0)


def with_features(
    rule: LatentFactorRule,
    features: ItemFeatures,
    rating_range: tuple[float, float],
    *,
    shrunk: bool,
) -> LatentFactorRule:
    r"""Return the rule with its items drawn to what features predict, and with new items.

    Every factor and the means are regressed on features (models.item_regression). An item of the
    rule moves by the difference of two posterior means, on features and without: by nothing where
    features tell nothing, or if the items are `shrunk` already. A new item has the predictions. In
    its noise variance is the doubt about them: with $v_m$ and $v_k$ the variances of its mean and
    factors, $v_m + \sum_k v_k E[u_k^2]$ is added to the usual one.
    """
    if rule.measured is None or rule.measured_noise is None:
        raise ConfigError("with_items: the model does not hold what was measured; fit it anew")
    count = len(rule.measured)
    items = _Items(rule, rule.measured, rule.measured_noise, design_matrix(features, count))
    usual = items.usual.columns
    pairs = [
        fit_regressions(usual, items.measured[:, k], items.noise[:, k])
        for k in range(items.measured.shape[1])
    ]
    regressed = _Regressed([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    if not shrunk:
        items = replace(items, rule=_drawn(items, regressed, rating_range))
    return _extended(items, regressed, rating_range)


def _drawn(
    items: _Items, regressed: _Regressed, rating_range: tuple[float, float]
) -> LatentFactorRule:
    """Move the items of the rule by what features tell beyond the measurements."""
    rule = items.rule
    (means, doubt), (plain, plain_doubt) = map(items.every_posterior, regressed)
    shifts = means - plain
    if _contains(rule.noise, plain_doubt):
        doubt = doubt - plain_doubt
    noise = rule.noise + doubt
    return replace(
        rule,
        factors=np.ascontiguousarray(rule.factors + shifts[:, :-1]),
        offsets=np.clip(rule.offsets + shifts[:, -1], *rating_range),
        noise=np.maximum(noise, _LEAST * rule.noise),
    )


def _contains(noise: Floats, doubt: Floats) -> bool:
    """Whether the items' noise variances include the doubt about their parameters.

    Those of fits with a budget do, and grow with the doubt; those of solved equations do not.
    """
    gaps = doubt - doubt.mean()
    return float(gaps @ noise) > _SLOPE * float(gaps @ gaps)


def _usual_noise(items: _Items, regressed: _Regressed) -> float:
    """Return the median noise variance of an item whose parameters are known."""
    noise = items.rule.noise[: len(items.measured)]
    doubt = items.every_posterior(regressed.on_features)[1]
    known = noise - doubt if _contains(noise, doubt) else noise
    return max(float(np.median(known)), _LEAST * float(np.median(noise)))


def _extended(
    items: _Items, regressed: _Regressed, rating_range: tuple[float, float]
) -> LatentFactorRule:
    """Add the items that the rule does not have, by their features alone."""
    rule, had = items.rule, items.rule.offsets.size
    new = items.design.rows(slice(had, None))
    if not len(new.columns):
        return rule
    found = [items.predicted(on, new) for on in regressed.on_features]
    means = np.column_stack([each[0] for each in found])
    doubts = np.column_stack([each[1] for each in found]) @ items.seconds
    count = len(items.measured)
    choice = _new_choice(rule.choice_factors[:count], items.usual.columns, new.columns)
    hidden = np.full(len(choice), _UNKNOWN * float(np.max(rule.choice_noise[:count])))
    return replace(
        rule,
        factors=np.vstack([rule.factors, means[:, :-1]]),
        offsets=np.append(rule.offsets, np.clip(means[:, -1], *rating_range)),
        noise=np.append(rule.noise, _usual_noise(items, regressed) + doubts),
        choice_factors=np.vstack([rule.choice_factors, choice]),
        choice_noise=np.append(rule.choice_noise, hidden),
    )


def _new_choice(factors: Floats, design: Floats, new: Floats) -> Floats:
    """Return choice factors of new items: a popularity by features, and loadings relative to it.

    The logarithm of popularity is regressed, and loadings count by popularity: it is what they are
    known by.
    """
    popular = np.maximum(factors[:, 0], 1e-12)
    common, _ = fit_regressions(design, np.log(popular), np.full(popular.size, 1e-6))
    level = np.exp(common.predicted(new)[0])
    loadings = factors[:, 1:] / popular[:, None]
    noise = float(np.median(popular)) / popular
    made = [
        fit_regressions(design, column, np.var(column) * noise + 1e-12)[0].predicted(new)[0]
        for column in loadings.T
    ]
    return np.asarray(level[:, None] * np.column_stack([np.ones(len(new)), *made]))
