r"""What gradients of earlier refits told of item means, factors and the prior from choice.

A gradient is of one model and cannot be averaged with that of another. But the model is public, and
so is the step that the gradient asks for: together they are a measurement of the parameters,
y = model + step, whose noise is that of the gradient over Fisher's information. Measurements of
different weeks are of the same numbers, which wander; a Kalman filter combines them entry by entry
(estimation.drift). All of it is post-processing of releases.

Factors are known up to a rotation. Those of today are turned to those that are remembered, never
the other way round: so what is known of an entry stays with that entry. The prior from choice is
remembered as A, items by factors, with prior means $A^T x$. In choice factors $c = H^T x$ of
today, $E[x x^T] = V V^T + \Delta$, that is the regression $E[c c^T]^{-1} V^T A$.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.algorithms.base import Choice, Looked
from tacit.estimation.drift import combined
from tacit.estimation.item_estimates import ItemEstimates
from tacit.estimation.latent import (
    Doubt,
    LatentEstimate,
    choice_step,
    gradient_step,
    known,
    newton_step,
)
from tacit.fitting.memory import Memory
from tacit.fitting.track import Track

Floats = NDArray[np.float64]
_MEANS, _FACTORS, _PRIOR = "item means", "item factors", "prior from choice"
_EVEN = {"even": True}  # entries drift alike, however often items are rated
_UNKNOWN = 1e6  # times the largest variance that is known, for what is not
_CHANCE = 3.0  # standard errors of the energy of a factor that is nothing but noise


class Parameters:
    """The parameters of a model, of these items, as refits measured them one after another."""

    def __init__(self, memory: Memory, ids: Sequence[Any]) -> None:
        """Read what is remembered; what is measured is added to the same memory."""
        self._memory, self._ids, self._rounds = memory, list(ids), 0
        self._tracks = memory.tracks
        self._frame = {**_EVEN, "began": memory.about.get("began")}
        self._prior: tuple[Floats, Floats]

    def begin(
        self, start: LatentEstimate, spread: Floats, choice: Choice, doubt: Floats
    ) -> tuple[LatentEstimate, Floats]:
        """Turn the start of a fit to what is remembered, and move it as far as that is known."""
        self._choice, self._start = choice, start
        self._doubt = Doubt(doubt, np.zeros_like(doubt))
        if not all(name in self._tracks for name in (_MEANS, _FACTORS, _PRIOR)):
            unknown = np.full(start.prior.shape[1], math.inf)
            self._prior = np.zeros_like(start.prior), unknown
            return start, spread
        self._turn()
        chance = np.zeros((len(self._ids), self._start.factors.shape[1] + 1))
        estimate, spread, _ = self._moved(chance)
        return estimate, spread

    def measured(
        self, estimate: LatentEstimate, spread: Floats, looked: Looked
    ) -> tuple[LatentEstimate, Floats, ItemEstimates]:
        """Add what a gradient at this estimate measures; return where all of it leads.

        Steps are from the start of the fit, of which measurements are independent. Chance, that
        there are so many users and no more, is about the same in every week, and is not averaged.
        """
        rated, moment = self._choice.rated, self._choice.moment
        step, variances = newton_step(estimate, looked.items, looked.items_noise, rated, spread)
        chance = newton_step(estimate, looked.items, 0.0, rated, spread)[1]
        noise = (variances - chance).T
        found = (np.hstack([estimate.factors, estimate.offsets[:, None]]) + step).T
        self._add(_FACTORS, found[:-1], noise[:-1])
        self._add(_MEANS, found[-1], noise[-1])
        change = np.linalg.solve(self._users * moment, looked.prior)
        prior = estimate.prior + change @ np.linalg.inv(known(estimate, rated))
        self._prior = combined(*self._prior, prior, looked.prior_noise**2)
        self._keep_prior()
        self._rounds += 1
        return self._moved(chance)

    @property
    def _users(self) -> float:
        return float(self._choice.rated.stratum_sizes.sum())

    def _moved(self, chance: Floats) -> tuple[LatentEstimate, Floats, ItemEstimates]:
        """Return the start of the fit, moved by what is known of parameters by now."""
        start, rated = self._start, self._choice.rated
        every = self._known()
        before = np.hstack([start.factors, start.offsets[:, None]])
        there = np.isfinite(every.variances)
        most = float(np.max(every.variances, where=there, initial=1e-12))
        every = ItemEstimates(
            np.where(there, every.values, before),
            np.where(there, every.variances, _UNKNOWN * most) + chance,
        )
        step = every.values - before, every.variances
        estimate, _ = gradient_step(start, step, rated.weights, self._doubt)
        prior, spread = self._prior_step(estimate)
        return estimate._replace(prior=prior), spread, every

    def _prior_step(self, estimate: LatentEstimate) -> tuple[Floats, Floats]:
        """Return the prior from choice of the start, moved by what is known of it."""
        (prior, noise), moment = self._prior, self._choice.moment
        there = np.isfinite(noise)
        change = np.where(there, prior - self._start.prior, 0.0)
        usual = math.sqrt(float(np.mean(noise[there]))) if there.any() else 1.0
        gradient = self._users * moment @ change @ known(estimate, self._choice.rated)
        return choice_step(estimate, gradient, usual, moment, self._choice.rated)

    def _known(self) -> ItemEstimates:
        """Return what is known of factors and means, with the drift since the last refit."""
        found = [self._tracks[name] for name in (_FACTORS, _MEANS)]
        pairs = [each.now(self._ids) if self._rounds else each.aged(self._ids) for each in found]
        values, variances = (np.vstack([f, m[None]]).T for f, m in zip(*pairs, strict=True))
        return ItemEstimates(values, variances)

    def _add(self, name: str, values: Floats, noise: Floats) -> None:
        """Take in a measurement; those of one fit are of the same time."""
        if name not in self._tracks:
            self._tracks[name] = Track.start(1, self._frame, self._ids, values.shape)
        self._memory.drew(name, 1, self._tracks[name].frame, self._ids, values, noise)
        if self._rounds:
            self._tracks[name].refine(self._ids, values, noise)
        else:
            self._tracks[name].add(self._ids, values, noise)

    def _keep_prior(self) -> None:
        """Remember A = H W, and the noise of each column."""
        prior, noise = self._prior
        found = (self._choice.weights @ prior).T
        track = Track.start(1, self._frame, self._ids, found.shape)
        track.values = np.ascontiguousarray(found)
        track.variances = np.repeat(noise[:, None], len(self._ids), axis=1)
        self._tracks[_PRIOR] = track

    def _turn(self) -> None:
        """Turn factors of the start, but for the user bias, to those that are remembered."""
        start, moment = self._start, self._choice.moment
        factors, prior = self._tracks[_FACTORS], self._tracks[_PRIOR]
        rank = start.factors.shape[1]
        self._prune(rank)
        for track in (factors, prior):
            if rank > len(track.values):
                track.widen(rank)
        values, variances = factors.aged(self._ids)
        size, own = len(values), prior.now(self._ids)
        old = np.linalg.solve(moment, self._choice.factors.T @ own[0].T)
        self._prior = np.asarray(old, dtype=np.float64), own[1].min(axis=1) / factors.left
        pad = [(0, 0), (0, size - rank)]
        here, there = np.pad(start.factors, pad), np.pad(start.prior, pad)
        weights = 1.0 / variances.mean(axis=0)
        cross = here.T @ (weights[:, None] * values.T) + there.T @ moment @ old
        left, _, right = np.linalg.svd(cross[1:, 1:])
        turn = np.eye(size)
        turn[1:, 1:] = left @ right
        self._start = start._replace(
            factors=np.ascontiguousarray(here @ turn), prior=np.ascontiguousarray(there @ turn)
        )

    def _prune(self, rank: int) -> None:
        """Drop factors that noise may have made, as long as the start has fewer of them."""
        values, variances = self._tracks[_FACTORS].aged(self._ids)
        energy = np.mean(values**2 / variances, axis=1)
        energy[0] = math.inf
        least = np.argsort(energy)[: max(len(values) - rank, 0)]
        kept = np.ones(len(values), dtype=bool)
        kept[least] = energy[least] > 1.0 + _CHANCE * math.sqrt(2.0 / values.shape[1])
        if not kept.all():
            self._tracks[_FACTORS].narrow(kept)
            self._tracks[_PRIOR].narrow(kept)
