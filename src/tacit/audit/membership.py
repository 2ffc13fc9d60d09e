"""Membership: is Ada's row among those that a published model was learned from?

The attacker knows everyone else's rows, the method, its settings and the budget, and two rows of
which one is Ada's: all but which of the two it is, and the noise. She learns her attack on fits of
her own, with noise of her own, in both worlds; then she is shown models that she has not seen.

Colluding users are the threat of joint differential privacy: all others lay their predictions on
the table as well. These are computed from the model and their own rows, so they should add nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Neighbours, PrivacyBudget
from tacit.audit.advantage import Guesses, area_under_curve, epsilon_limit, exact_limit
from tacit.audit.finding import Finding
from tacit.audit.learned_attack import Learned
from tacit.audit.population import LEVELS, Insider, Levels, law_of, published, stream
from tacit.audit.progress import NO_PROGRESS, Steps
from tacit.audit.target import Target
from tacit.models import Model
from tacit.models.rules import Floats

View = Callable[[Model, Insider], Floats]

_USERS, _ITEMS = 40, 6
_FAR = 5.0  # sds beyond which what is seen counts no more
_SUCCESS = 0.8  # the least advantage by which an attack on a model without noise proves itself


def model_alone(model: Model, _: Insider) -> Floats:
    """See the numbers of the published model."""
    return published(model)


def model_and_predictions(model: Model, insider: Insider) -> Floats:
    """See the model, and the predictions of everyone else for every item."""
    return np.concatenate([published(model), insider.predictions(model).ravel()])


VIEWS: dict[str, View] = {
    "someone who knows all other rows": model_alone,
    "all other users, with their predictions": model_and_predictions,
}
"""Who attacks, and what they see."""


def two_rows(items: int, relation: Neighbours) -> tuple[Levels, Levels]:
    """Return two rows that are easy to tell apart: all ratings extreme, no item in common.

    Counts and covariances of such rows are as far apart as their sensitivity allows. For
    add_remove, the second row is empty.
    """
    ends = np.where(np.arange(items) % 2, 1, LEVELS)
    first = np.arange(items) < items // 2
    empty = relation is Neighbours.ADD_REMOVE
    return np.where(first, ends, 0), np.where(first | empty, 0, ends)


def guess_rows(
    insider: Insider,
    rows: tuple[Levels, Levels],
    trials: int,
    seed: int,
    steps: Steps = NO_PROGRESS,
) -> dict[str, Guesses]:
    """Let every attacker of VIEWS learn on `trials` fits, and guess on as many new ones."""
    coins = stream(seed, 2).integers(2, size=2 * trials) == 1
    seen: dict[str, list[Floats]] = {name: [] for name in VIEWS}
    for number, coin in enumerate(coins):
        model = insider.fit(rows[0] if coin else rows[1], seed * 1_000_000 + number)
        for name, view in VIEWS.items():
            seen[name].append(view(model, insider))
        steps.step()
    return {name: _guesses(np.array(seen[name]), coins, trials) for name in VIEWS}


def _guesses(seen: Floats, coins: NDArray[np.bool_], trials: int) -> Guesses:
    """Learn on the first trials, guess on the rest."""
    hidden = np.where(coins, 1.0, -1.0)[:, None]
    attack = Learned.from_examples(seen[:trials], hidden[:trials], far=_FAR)
    scores, truth = attack.guess(seen[trials:])[:, 0], coins[trials:]
    right = int(np.sum((scores > 0) == truth))
    return Guesses(right, truth.size, area_under_curve(scores[truth], scores[~truth]))


def membership_guesses(
    subject: Target,
    budget: PrivacyBudget | None,
    trials: int,
    seed: int,
    steps: Steps = NO_PROGRESS,
) -> dict[str, Guesses]:
    """Attack models of synthetic people under one budget, for every attacker of VIEWS."""
    law = law_of(_ITEMS, seed, implicit=subject.implicit)
    others = law.draw(_USERS - 1, stream(seed, 3))
    rows = two_rows(_ITEMS, subject.budget.neighbours)
    return guess_rows(Insider(subject, budget, others), rows, trials, seed, steps)


def membership(
    subject: Target,
    seed: int = 0,
    *,
    epsilons: Sequence[float] = (),
    trials: int = 400,
    steps: Steps = NO_PROGRESS,
) -> list[Finding]:
    """Attack models without privacy, as a control, and with it.

    Epsilon is the subject's, or each of those given. Noise comes from seeds, so that findings
    repeat: it is the same sampler, fed with other words. What keeps its promise is called unsound
    with a probability of at most 5 % a finding, and with far less where the limit is not reached.
    """
    chosen = epsilons or (subject.budget.epsilon,)
    budgets = [None, *(replace(subject.budget, epsilon=epsilon) for epsilon in chosen)]
    steps.plan(2 * trials * len(budgets))
    return [
        _finding(subject.name, budget, who, guesses)
        for budget in budgets
        for who, guesses in membership_guesses(subject, budget, trials, seed, steps).items()
    ]


def _finding(name: str, budget: PrivacyBudget | None, who: str, guesses: Guesses) -> Finding:
    how = (
        f"{who}: a score learned on {guesses.trials} own fits, then {guesses.trials} guesses "
        f"between two rows; area under curve {guesses.area:.3f}"
    )
    interval = guesses.interval
    if budget is None:
        claim = f"Control: nothing is promised, and the attack must win by more than {_SUCCESS}."
        subject, wins = f"{name}, NOT PRIVATE: {who}", interval.low > _SUCCESS
        return Finding(
            "membership", subject, claim, guesses.advantage, 1.0, wins, how, interval, control=True
        )
    limit = exact_limit(budget)
    claim = (
        f"Nobody guesses with an advantage above {limit:.3f}, the most that Gaussian releases "
        f"allow (anything of this epsilon and delta: {epsilon_limit(budget):.3f})."
    )
    subject, holds = f"{name}, epsilon {budget.epsilon:g}: {who}", interval.low <= limit
    return Finding("membership", subject, claim, guesses.advantage, limit, holds, how, interval)
