"""LatentFactors: what people choose and how they rate it, in one model. The default."""

import math
from dataclasses import dataclass, fields, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._validate import Count, Range, Seed, Validated
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Choice, Facts, Looked
from tacit.algorithms.latent_shares import (
    NOTHING,
    Shares,
    by_density,
    popular_items,
    shares_of,
    with_choices,
    without_covariance,
)
from tacit.algorithms.moments import MOMENT, Learned, Moments
from tacit.algorithms.preparation import default_ridge, public_settings
from tacit.estimation.choice import ChoiceFactors, choice_factors
from tacit.estimation.cooccurrence import CoRatings
from tacit.estimation.drift import averaged
from tacit.estimation.item_estimates import ItemEstimates, from_equations, from_gradients, moved
from tacit.estimation.latent import (
    Doubt,
    FactorMoments,
    LatentEstimate,
    choice_step,
    equations_step,
    expected_norm,
    from_choice,
    gradient_step,
    initial_variances,
    newton_step,
    padded,
    prior_step,
    rescaled,
)
from tacit.estimation.spiked_covariance import MOST_DIRECTIONS, best_known
from tacit.models.latent import LatentFactorRule, choice_weights
from tacit.trusted import statistics
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import any_vector, outer_product

Floats = NDArray[np.float64]
Step = Literal["auto", "gradient", "equations"]

_PAIRS = Release(ReleaseKind.CO_OCCURRENCES, (1,))
_MORE_PAIRS = Release(ReleaseKind.CO_OCCURRENCES, (2,))
_MORE_MOMENT = Release(ReleaseKind.COVARIANCE, (2,))
_WORTH = 0.1, 0.01  # a second look: of the first one's share, and of the budget
_TELLING = 0.04  # strength of choice factors: less may come from busy users alone, or helps nobody
_LOADING = 0.05  # of the rating range: what a loading on a choice factor may be
_LEGIBLE = 0.35  # of the variance of such loadings, at the noise of a gradient: then they begin
_ROUNDS = {"gradient": 2, "equations": 12}
_FEWEST = 20  # factors that the likelihood decides on, where there is no noise
_USERS_EACH = 50  # users for each of them
_MANY_USERS = 500  # with fewer the likelihood fits chance
_FIRST_GAIN = 2.0  # of the first regression on choice: posterior means are shrunk
_CLIP = 0.8  # of the norm that a gradient is expected to have
_FOR_CHOICE = 0.125  # of its squared norm for items: that for the prior from choice
_LEAST_NOISE = 1e-4  # of the usual variance of a rating
_ROOM = 1.5  # times the squared norm that (c, u, fit error) are expected to have


class _State(NamedTuple):
    """What is known in a round; `spread` is E[(W^T c)(W^T c)^T].

    `measured` are the items' numbers before shrinking; there are none before the rounds.
    """

    learned: Learned
    choice: ChoiceFactors
    weights: Floats
    estimate: LatentEstimate
    spread: Floats
    measured: ItemEstimates | None = None

    @property
    def users(self) -> float:
        return self.learned.spreads.users


@dataclass(frozen=True, kw_only=True)
class LatentFactors(Validated):
    r"""Choices and ratings in one linear Gaussian model, learned by noisy EM from a good start.

    With $e_i$ the 0/1 row of the $d_i$ items that user i rated, and $x_i = e_i/\sqrt{d_i}$:

    $$x_i = V c_i + N(0, \Delta), \quad u_i \sim N(W^T c_i, I), \quad
      y_{ij} = m_j + F_j u_i + N(0, D_j).$$

    1. *Choice*: $\sum_i x_i x_i^T$, of the 4000 items that are rated most; V and $\Delta$ from what
       noise cannot have made (estimation.choice). Released once more if V has factors.
    2. *Start*: F and D as `Moments` finds them, and before step 1 item means. Where factors may be
       out of reach the covariance is released in two parts, the second only if the first shows a
       factor. Where it shows none, F begins as 0 with a prior mean from V.
    3. *Rounds*: the gradient of the expected log-likelihood for F, m and W, which else begins at 0
       (statistics `ExpectedGradient`), over Fisher's information (estimation.latent), and shrunk
       by how much of it is noise.
    4. Without a budget the M-step for F, m and D is solved instead, with priors on items that are
       fitted to them (`ExpectedEquations`): it needs no threshold, and finds factors where there
       are few people and many items. Before each round and after the last the second moment of
       $(c_i, \hat u_i)$, $\hat u_i$ the user's own posterior mean, gives W by regression
       (`FactorMoments`). It also tells whether D is right.

    Locally, models.latent.LatentFactorRule. No cap on $d_i$ is needed. Where nothing can be told
    from noise F has no column but the user bias, W = 0 and m is the same for all items: what is
    left is the user's own mean, and for lists the most popular items.

    *Paper:* none; it is this package's own method. A prior mean from choice is after NSVD (Paterek
    2007) and SVD++ (Koren 2008).
    *Guarantee:* UserMoments, ItemCounts, RowSums, ResidualCovariance of residuals and of $x_i$,
    ExpectedGradient; or FactorMoments and ExpectedEquations.
    """

    name: ClassVar[str] = "latent-factors"

    step: Step = "auto"
    """How item factors move in a round: along a released gradient, or to the solution of released
    equations, which have more numbers. "auto": equations without a budget and with 500 users or
    more, otherwise the gradient."""
    rounds: Annotated[int, Range(1, 100)] | None = None
    """Of item factors; None: 2 with gradients, 12 with equations."""
    rank: Count | None = None
    """At most this many latent factors; None: the noise decides."""
    max_ratings: Count | None = None
    """At most this many ratings of a user count in the releases; None: all."""
    sampling_seed: Seed = 0
    """Of the choice of at most max_ratings ratings of a user."""
    start_seed: Seed = 0
    """Of the public random numbers: first factors, and noise to compare eigenvalues with."""

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve the start, both releases of each matrix, and those of all rounds."""
        shares = shares_of(facts)
        self._moments(shares).reserve_with(ledger, facts, shares.covariance)
        if facts.budget is not None:
            more = shares.more_covariance
            ledger.reserve(_MORE_MOMENT, outer_product(1.0), more, scaled=True)
        pairs = statistics.ResidualCovariance(self._presence(facts.n_items), (), 1.0)
        ledger.reserve(_PAIRS, pairs.sensitivity, shares.choice, scaled=True)
        if facts.budget is not None:
            ledger.reserve(_MORE_PAIRS, pairs.sensitivity, shares.more_choice, scaled=True)
        looks = self._looks(facts)
        for look in _upto(looks):
            ledger.reserve(_moments(look), outer_product(1.0), shares.moments / looks, scaled=True)
        for step, share in self._step_shares(facts, shares).items():
            ledger.reserve(step, any_vector(1.0), share, scaled=True)

    def run(self, mechanism: Mechanism, facts: Facts) -> LatentFactorRule:
        """Make the releases; users solve on the factors that come out."""
        state = self._start(mechanism, facts)
        by = self._by_equations if self._form(facts) == "equations" else self._by_gradients
        state = _without_empty(by(mechanism, facts, state))
        estimate = state.estimate
        factors, noise = state.choice.second_moment(state.users)
        return LatentFactorRule(
            factors=np.ascontiguousarray(estimate.factors),
            offsets=np.clip(estimate.offsets, *facts.rating_range),
            noise=estimate.noise,
            choice_factors=np.ascontiguousarray(factors),
            choice_noise=noise,
            prior=np.ascontiguousarray(estimate.prior),
            liked=float(np.clip(state.learned.spreads.overall, *facts.rating_range)),
            measured=state.measured and np.ascontiguousarray(state.measured.values),
            measured_noise=state.measured and np.ascontiguousarray(state.measured.variances),
        )

    def public(self, facts: Facts) -> dict[str, str]:
        """Name the settings, with the values that were used."""
        used = {field.name: getattr(self, field.name) for field in fields(self)}
        used |= {"step": self._form(facts), "rounds": self._rounds(facts)}
        return public_settings(self.name, used)

    def _start(self, mechanism: Mechanism, facts: Facts) -> _State:
        """Return the start of Moments, choice factors, and a first prior from choice."""
        looked: list[tuple[ChoiceFactors, Shares]] = []
        learned = self._moments(shares_of(facts)).learn(
            mechanism,
            facts,
            lambda rated, users: looked.append(self._choices(mechanism, facts, rated, users)),
            lambda found: self._second_look(mechanism, facts, looked[0][1], found),
            lambda rated: popular_items(facts, rated)[0],
        )
        found = looked[0][0]
        factors, noise = found.second_moment(learned.spreads.users)
        weights = choice_weights(factors, noise)
        prior = np.zeros((weights.shape[1], learned.factors.shape[1]))
        estimate = LatentEstimate(learned.factors, learned.items.means, learned.noise, prior)
        spread = np.zeros((prior.shape[1], prior.shape[1]))
        state = _State(learned, found, weights, estimate, spread)
        if facts.budget is None or learned.factors.shape[1] > 1 or found.strength < _TELLING:
            return state
        estimate, spread = from_choice(estimate, weights.T @ factors, self.rank)
        begun = state._replace(estimate=estimate, spread=spread)
        remembered = facts.earlier is not None
        return begun if remembered or self._legible(mechanism, facts, begun) else state

    def _legible(self, mechanism: Mechanism, facts: Facts, state: _State) -> bool:
        """Whether the first gradient can tell the loadings of the last factor from its noise."""
        statistic, _ = self._slope(state)
        noise_sd = mechanism.noise_sd(self._step_release(facts, 1), statistic.sensitivity)
        rated, nothing = state.learned.items.rated, np.zeros(statistic.shape)[: facts.n_items]
        _, variances = newton_step(state.estimate, nothing, noise_sd, rated, state.spread)
        usual = (_LOADING * facts.width) ** 2
        return float(rated.shares @ (usual / (usual + variances[:, -2]))) >= _LEGIBLE

    def _choices(
        self, mechanism: Mechanism, facts: Facts, rated: CoRatings, users: float
    ) -> tuple[ChoiceFactors, Shares]:
        """Look at choices, once more if they tell of taste, and divide what is left by that."""
        shares = by_density(facts, rated)
        if _adaptive(facts):
            self._redivide(mechanism, facts, shares, {_PAIRS: shares.choice})
        alone = popular_items(facts, rated)[1]
        known = best_known("auto", rated.weights) if alone is None else alone
        bounds = replace(self._presence(facts.n_items), items=alone)
        statistic = statistics.ResidualCovariance(bounds, (), 1.0, known)

        def factors_of(pairs: tuple[Floats, float]) -> ChoiceFactors:
            counts = rated.weights, float(np.mean(rated.error * rated.weights))
            limits = self.rank or MOST_DIRECTIONS, self.start_seed
            released = pairs[0].copy(), pairs[1]
            return choice_factors(released, counts, known, users, limits, alone is not None)

        def look(release: Release) -> tuple[Floats, float]:
            return mechanism.release(release, statistic), mechanism.noise_sd(release)

        first = look(_PAIRS)
        found, more = factors_of(first), with_choices(facts, rated)
        worth = more.more_choice >= max(_WORTH[0] * more.choice, _WORTH[1])
        if not (_adaptive(facts) and found.strength >= _TELLING and worth):
            return found, shares
        self._redivide(mechanism, facts, more, {_MORE_PAIRS: more.more_choice})
        return factors_of(averaged(first, look(_MORE_PAIRS))), more

    def _second_look(
        self, mechanism: Mechanism, facts: Facts, shares: Shares, found: int
    ) -> Release | None:
        """Return the second look at the covariance if the first one found factors.

        Where it found none, the rounds get what the second look would have cost.
        """
        if not _adaptive(facts) or shares.more_covariance <= NOTHING:
            return None
        if found:
            return _MORE_MOMENT
        steps = self._step_shares(facts, without_covariance(shares))
        mechanism.redivide({_MORE_MOMENT: NOTHING} | steps)
        return None

    def _redivide(
        self, mechanism: Mechanism, facts: Facts, shares: Shares, choice: dict[Release, float]
    ) -> None:
        """Divide what is left between choices, the covariance and the rounds."""
        covariance = {MOMENT: shares.covariance, _MORE_MOMENT: shares.more_covariance}
        mechanism.redivide(covariance | choice | self._step_shares(facts, shares))

    def _step_shares(self, facts: Facts, shares: Shares) -> dict[Release, float]:
        """Return the share of each round; gradients tell what factor moments would."""
        rounds = self._rounds(facts)
        every = shares.steps + (0.0 if self._looks(facts) else shares.moments)
        return {self._step_release(facts, each): every / rounds for each in _upto(rounds)}

    def _by_gradients(self, mechanism: Mechanism, facts: Facts, state: _State) -> _State:
        """Follow gradients for all that the model has: F, m and W."""
        rated, moment = state.learned.items.rated, self._choice_moment(state)
        measured, doubt = [], Doubt(state.learned.items.doubt, state.learned.doubt)
        if facts.earlier is not None:
            factors, _ = state.choice.second_moment(state.users)
            choice = Choice(state.weights, factors, moment, rated)
            begun = facts.earlier.begin(state.estimate, state.spread, choice, doubt.means)
            state = state._replace(estimate=begun[0], spread=begun[1])
        for number in _upto(self._rounds(facts)):
            looked = self._gradient(mechanism, facts, state, number)
            if facts.earlier is not None:
                estimate, spread, every = facts.earlier.measured(
                    state.estimate, state.spread, looked
                )
                measured = [every]
            else:
                step = newton_step(
                    state.estimate, looked.items, looked.items_noise, rated, state.spread
                )
                measured.append(moved(state.estimate, step))
                prior, spread = choice_step(
                    state.estimate, looked.prior, looked.prior_noise, moment, rated
                )
                estimate, doubt = gradient_step(state.estimate, step, rated.weights, doubt)
                estimate = estimate._replace(prior=prior)
            state = state._replace(estimate=estimate, spread=spread)
        return state._replace(measured=from_gradients(measured, state.learned.items.effects))

    def _gradient(self, mechanism: Mechanism, facts: Facts, state: _State, number: int) -> Looked:
        """Release the gradient at what is known so far."""
        release, (statistic, weight) = self._step_release(facts, number), self._slope(state)
        noise_sd = mechanism.noise_sd(release, statistic.sensitivity)
        items, prior = np.split(mechanism.release(release, statistic), [facts.n_items])
        return Looked(items, noise_sd, prior[:, :-1] / weight, noise_sd / weight)

    def _slope(self, state: _State) -> tuple[statistics.ExpectedGradient, float]:
        """Return the gradient of all parameters, and how rows of the prior are weighted in it."""
        clip, moment = self._gradient_clip(state), self._choice_moment(state)
        weight = clip * math.sqrt(_FOR_CHOICE / (np.trace(moment) * self._norm(state)))
        bound = clip * math.sqrt(1.0 + _FOR_CHOICE)
        bounds, model = self._bounds(state), self._model(state)
        return statistics.ExpectedGradient(bounds, model, bound, weight), weight

    def _by_equations(self, mechanism: Mechanism, facts: Facts, state: _State) -> _State:
        """Solve the M-step in every round, and regress on choice before it and at the end."""
        shares = state.learned.items.rated.shares
        most = min(self.rank or _FEWEST, facts.n_items - 1, int(state.users / _USERS_EACH)) + 1
        state = state._replace(estimate=padded(state.estimate, most, self.start_seed))
        variances = initial_variances(state.estimate, shares)
        rounds, least = self._rounds(facts), _LEAST_NOISE * default_ridge(facts.rating_range)
        for number in _upto(rounds):
            state, _ = self._look(mechanism, state, number, _FIRST_GAIN if number == 1 else 1.0)
            release = self._step_release(facts, number)
            statistic = statistics.ExpectedEquations(
                self._bounds(state),
                self._model(state),
                self._equations_clip(facts, state),
                by_sqrt_count=facts.budget is not None,
            )
            noise_sd = mechanism.noise_sd(release, statistic.sensitivity)
            released = mechanism.release(release, statistic), noise_sd
            solved, variances = equations_step(state.estimate, released, variances, least)
            state = state._replace(estimate=solved)
        rated = state.learned.items.rated
        every = from_equations(state.estimate, variances, rated, released[1])
        state, last = self._look(mechanism, state._replace(measured=every), rounds + 1, 1.0)
        return state._replace(estimate=rescaled(state.estimate, last))

    def _look(
        self, mechanism: Mechanism, state: _State, number: int, gain: float
    ) -> tuple[_State, FactorMoments]:
        """Release second moments of (c, u, fit error), and move W by what they tell."""
        bound = math.sqrt(_ROOM * (self._norm(state) + self._choice_norm(state) + 1.0))
        statistic = statistics.FactorMoments(self._bounds(state), self._model(state), bound)
        release = _moments(number)
        noise_sd = mechanism.noise_sd(release, statistic.sensitivity)
        found = FactorMoments(mechanism.release(release, statistic), noise_sd, state.users)
        estimate, spread = prior_step(state.estimate, found, gain)
        return state._replace(estimate=estimate, spread=spread), found

    def _norm(self, state: _State) -> float:
        return expected_norm(state.estimate, state.learned.items.rated, state.spread)

    def _choice_norm(self, state: _State) -> float:
        """Return the expected squared norm of c."""
        return float(np.trace(self._choice_moment(state)))

    def _choice_moment(self, state: _State) -> Floats:
        r"""Return $E[c c^T] = H^T (V V^T + \Delta) H = H^T V$."""
        factors, _ = state.choice.second_moment(state.users)
        return np.asarray(state.weights.T @ factors)

    def _gradient_clip(self, state: _State) -> float:
        """Return a bound on gradients: most of the norm that they are expected to have."""
        noise = float(state.learned.items.rated.shares @ state.estimate.noise)
        return _CLIP * math.sqrt(noise * (1.0 + self._norm(state)))

    def _equations_clip(self, facts: Facts, state: _State) -> float:
        """Return a bound on a user's equations; without a budget, what hardly anybody reaches."""
        rank, noise = state.estimate.factors.shape[1], float(np.mean(state.estimate.noise))
        if facts.budget is None:
            return 4.0 * math.sqrt(facts.n_items) * float(rank + 2 + facts.width**2)
        return float(_CLIP * (1.0 + self._norm(state) + math.sqrt(rank) + noise))

    def _moments(self, shares: Shares) -> Moments:
        return Moments(
            spread_share=shares.spreads,
            weight_share=shares.weights,
            effect_share=shares.effects,
            rank=self.rank,
            max_ratings=self.max_ratings,
            sampling_seed=self.sampling_seed,
            start_seed=self.start_seed,
        )

    def _model(self, state: _State) -> statistics.LatentModel:
        estimate = state.estimate
        return statistics.LatentModel(
            estimate.factors, estimate.noise, state.weights, estimate.prior
        )

    def _bounds(self, state: _State) -> RowBounds:
        offsets = state.estimate.offsets
        return RowBounds(self.max_ratings, offsets, False, math.inf, self.sampling_seed)

    def _presence(self, n_items: int) -> RowBounds:
        return RowBounds(
            self.max_ratings, np.zeros(n_items), False, 1.0, self.sampling_seed,
            by_sqrt_count=True, binarise=True,
        )  # fmt: skip

    def _form(self, facts: Facts) -> str:
        if self.step != "auto":
            return self.step
        many = facts.n_users is not None and facts.n_users >= _MANY_USERS
        return "equations" if facts.budget is None and many else "gradient"

    def _rounds(self, facts: Facts) -> int:
        return self.rounds or _ROUNDS[self._form(facts)]

    def _looks(self, facts: Facts) -> int:
        """Return how often second moments are released: before each equation, and at the end."""
        return self._rounds(facts) + 1 if self._form(facts) == "equations" else 0

    def _step_release(self, facts: Facts, number: int) -> Release:
        equations = self._form(facts) == "equations"
        return Release(ReleaseKind.EQUATIONS if equations else ReleaseKind.GRADIENT, (number,))


def _adaptive(facts: Facts) -> bool:
    """Return whether shares may follow from earlier releases."""
    return facts.budget is not None and not facts.paper_accounting


def _without_empty(state: _State) -> _State:
    """Leave out the factors of which nothing was told; the first, the user bias, stays."""
    told = np.any(state.estimate.factors != 0.0, axis=0)
    told[0] = True
    if told.all():
        return state
    estimate, measured = state.estimate, state.measured
    if measured is not None:
        columns = np.append(told, True)
        measured = ItemEstimates(measured.values[:, columns], measured.variances[:, columns])
    return state._replace(
        estimate=estimate._replace(
            factors=estimate.factors[:, told], prior=estimate.prior[:, told]
        ),
        measured=measured,
    )


def _upto(count: int) -> range:
    return range(1, count + 1)


def _moments(number: int) -> Release:
    return Release(ReleaseKind.FACTOR_MOMENTS, (number,))
