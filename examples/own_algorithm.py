"""An algorithm of one's own, outside the package: fitted, certified, and compared with the default.

Run it with `python examples/own_algorithm.py`; docs/howto/own-algorithm.md explains it. `Spectral`
makes two releases, item means and a covariance, and publishes latent factors.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import tacit
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms import Facts
from tacit.datasets.synthetic import synthesise
from tacit.evaluation import evaluate, split, user_mean_accuracy
from tacit.models.linear import RidgeRule
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds, all_ratings
from tacit.trusted.statistics import ItemSums, ResidualCovariance

MEANS, COVARIANCE = Release(ReleaseKind.ITEM_SUMS), Release(ReleaseKind.COVARIANCE, (1,))


@dataclass(frozen=True)
class Spectral:
    """Item means, then the eigenvectors of the covariance of what is left."""

    name: ClassVar[str] = "spectral"

    rank: int = 4
    clip: float = 2.0  # residuals are clipped to this
    variance: float = 1.0  # of a rating about its prediction by factors: a public guess

    def bounds(self, offsets: np.ndarray) -> RowBounds:
        """Bound a row: d residuals of at most `clip`, divided by sqrt(d), have norm <= clip."""
        return RowBounds(
            None, offsets, centre=True, norm=self.clip, clip=self.clip, by_sqrt_count=True
        )

    def statistics(self, facts: Facts, offsets: np.ndarray) -> tuple[ItemSums, ResidualCovariance]:
        """Describe both sums; their classes prove the sensitivity that each one states."""
        sums = ItemSums(all_ratings(facts.n_items), facts.rating_range)
        return sums, ResidualCovariance(self.bounds(offsets), (), self.clip)

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Plan every release before any rating is read: shares of the budget."""
        if facts.n_users is None:
            raise tacit.ConfigError("spectral: the number of users must be public: replace")
        sums, covariance = self.statistics(facts, np.zeros(facts.n_items))
        ledger.reserve(MEANS, sums.sensitivity, 0.25)
        ledger.reserve(COVARIANCE, covariance.sensitivity, 0.75)

    def run(self, mechanism: Mechanism, facts: Facts) -> RidgeRule:
        """Make the releases; everything else is computed from them, and free."""
        sums, _ = self.statistics(facts, np.zeros(facts.n_items))
        total, weights = mechanism.release(MEANS, sums)
        low, high = facts.rating_range
        weights = np.maximum(weights, 3 * mechanism.noise_sd(MEANS) + 1.0)
        means = (low + high) / 2 + (high - low) / 2 * np.clip(total / weights, -1.0, 1.0)
        _, covariance = self.statistics(facts, means)
        noisy = mechanism.release(COVARIANCE, covariance)
        # Expected weight of co-ratings of items j and k if users rate at random: w_j w_k / users.
        scale = weights / np.sqrt(facts.n_users or 1)
        np.fill_diagonal(noisy, 0.0)  # the diagonal also has the variance of single ratings
        edge = mechanism.noise_sd(COVARIANCE) * np.sqrt(2.0 * facts.n_items)  # of noise
        values, vectors = np.linalg.eigh(noisy)
        strength = np.sqrt(np.maximum(values[-self.rank :] - edge, 0.0))
        factors = vectors[:, -self.rank :] * strength / scale[:, None]
        noise = np.full(facts.n_items, self.variance)
        return RidgeRule(factors, means, noise, True, 1.0, ReleaseKind.COVARIANCE)

    def public(self, facts: Facts) -> dict[str, str]:  # noqa: ARG002 - as the protocol has it
        """List the settings in the certificate."""
        return {"spectral settings": f"rank {self.rank}, clip {self.clip}, sd^2 {self.variance}"}


def main() -> None:
    """Fit both under the same budget, and compare them on ratings that were held out."""
    made = synthesise("tastes", users=20_000, items=60, per_user=20, seed=1)
    films = tacit.Catalogue(made.items["item"], made.items["title"])
    ratings = tacit.Ratings.from_frame(made.train, rating_range=(0.5, 5), catalogue=films)
    train, test = split(ratings, 0.1, np.random.default_rng(0))
    print(f"user mean: RMSE {user_mean_accuracy(train, test).rmse:.3f}")
    for algorithm in (Spectral(), None):  # None: the default
        model = tacit.fit(train, algorithm, epsilon=1.0)
        holds = "holds" if model.verify().holds else "DOES NOT HOLD"
        accuracy = evaluate(model, train, test)
        print(f"{model.algorithm}: RMSE {accuracy.rmse:.3f}; its certificate {holds}; {model}")


if __name__ == "__main__":
    main()
