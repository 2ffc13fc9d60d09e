"""Mutants of the accounts: what is paid, what it costs, and what is said about it."""

from tests.mutants.edits import Edit
from tests.mutants.mutant import Mutant

LEDGER = "accounting/ledger.py"
BUDGET = "accounting/budget.py"
CERTIFICATE = "accounting/certificate.py"
PREPARATION = "algorithms/preparation.py"

BOOKS = "tests/test_ledger.py::"
COSTS = "tests/test_budget.py::"
FITS = "tests/test_fitting.py::"
OPEN = "tests/test_preparation.py::TestOpenReservations::"
SEARCH = "tests/test_tune.py::"
WALLS = "tests/architecture/test_structure.py::"
FILES = "tests/test_model_file.py::"
WORDS = "tests/test_promise.py::"
TAUGHT = "tests/privacy/test_what_mutants_taught.py::"
EVERY_SUM = (
    "tests/contracts/test_algorithms.py::TestEveryAlgorithm::"
    "test_every_sum_is_in_the_ledger_with_its_sensitivity_and_noise"
)
WHOLE = FITS + "test_the_whole_budget_is_spent_and_no_more[0.0-0.3-replace]"

ACCOUNTS = (
    Mutant(
        "a release is left out of the ledger",
        "it is used, and the certificate knows nothing of it",
        (Edit(LEDGER, "Ledger.spend",
              "self._book.spent.append(entry)",
              "if 'item sums' not in entry.name:\n"
              "    self._book.spent.append(entry)"),),
        (EVERY_SUM + "[frank-wolfe, item means-replace]", WHOLE),
    ),
    Mutant(
        "item means are taken off without paying for them",
        "exact means of everyone's ratings are in the model",
        (Edit(PREPARATION, "Preparation._offsets",
              "noisy = mechanism.release(_SUMS, ItemSums(self._bounds(facts), "
              "facts.rating_range))",
              "statistic = ItemSums(self._bounds(facts), facts.rating_range)\n"
              "noisy = mechanism._engine.sum(statistic, 2.0 ** (-20))._exact_sum * 2.0 ** (-20)"),),
        (WALLS + "test_only_the_mechanism_opens_a_bounded_sum",
         EVERY_SUM + "[frank-wolfe, item means-replace]"),
    ),
    Mutant(
        "the norm of rows is looked up without paying for it",
        "a quantile of everyone's rows is in the model",
        (Edit(PREPARATION, "Preparation._prepared",
              "mechanism.release(NORMS, statistic)",
              "mechanism._engine.sum(statistic, 2.0 ** (-20))._exact_sum * 2.0 ** (-20)"),),
        (WALLS + "test_only_the_mechanism_opens_a_bounded_sum",
         EVERY_SUM + "[frank-wolfe, private norm-replace]"),
    ),
    Mutant(
        "the most rated items are counted in the ratings themselves",
        "a rare item in the catalogue gives away who has rated it",
        (Edit("fitting/top_items.py", "narrowed",
              "mechanism.release(COUNTS, ItemCounts(ratings.n_items))",
              "np.bincount(ratings.items, minlength=ratings.n_items).astype(float)"),),
        ("tests/test_preparation.py::TestTopItems::test_with_a_tiny_budget_the_choice_is_noise",),
    ),
    Mutant(
        "the noise is that of the other relation",
        "mu is up to twice what the certificate says",
        (Edit(BUDGET, "Sensitivity.under",
              "Neighbours.REPLACE",
              "Neighbours.ADD_REMOVE"),),
        (BOOKS + "test_sensitivity_is_that_of_the_relation",),
    ),
    Mutant(
        "the noise is calibrated to add_remove, whatever the relation",
        "as above, but the certificate lists the right sensitivity beside it",
        (Edit(BUDGET, "PrivacyBudget.noise_sd",
              "sensitivity.add_remove if paper else sensitivity.under(self.neighbours)",
              "sensitivity.add_remove"),),
        (WHOLE,),
    ),
    Mutant(
        "a scaled release keeps the noise that was planned for another sensitivity",
        "rows are longer than the noise was made for",
        (Edit(LEDGER, "Ledger.planned",
              "sensitivity is None or not plan.scaled",
              "plan is not None"),),
        (OPEN + "test_a_scaled_release_has_scaled_noise_at_the_same_cost",
         EVERY_SUM + "[frank-wolfe, private norm-replace]"),
    ),
    Mutant(
        "a release may have another sensitivity than was reserved",
        "noise for a small sum is added to a large one",
        (Edit(LEDGER, "Ledger._covers",
              "self._bound(sensitivity) == plan.entry.sensitivity",
              "True"),),
        (BOOKS + "test_a_release_cannot_turn_out_more_sensitive_than_planned",),
    ),
    Mutant(
        "a reservation past the budget is let through",
        "one release too many, and epsilon is what it comes to",
        (Edit(LEDGER, "Ledger._take",
              "self.left + _ROUNDING * self._limit",
              "self._limit * (1 + _ROUNDING)"),),
        (BOOKS + "test_a_share_too_many_is_refused_with_what_was_left_and_changes_nothing",),
    ),
    Mutant(
        "a release may be spent twice",
        "two draws at the price of one, whose mean has less noise",
        (Edit(LEDGER, "Ledger.spend",
              "plan is None or spent or (not self._covers(plan, sensitivity))",
              "plan is None or not self._covers(plan, sensitivity)"),),
        (BOOKS + "test_nothing_is_spent_twice",),
    ),
    Mutant(
        "a release may be spent twice inside a part of the ledger",
        "a search draws the sums of a candidate as often as it likes",
        (Edit(LEDGER, "Ledger.spend",
              "full in (entry.release for entry in self._book.spent)",
              "release in (entry.release for entry in self._book.spent)"),),
        (BOOKS + "test_nothing_is_spent_twice_inside_a_part",),
    ),
    Mutant(
        "a part of the ledger is not taken from the whole",
        "a search, and then a fit with the whole budget again",
        (Edit(LEDGER, "Ledger.part",
              "self._take(what, share * self._limit)",
              ""),),
        (OPEN + "test_parts_are_set_aside_as_a_whole",),
    ),
    Mutant(
        "the winner of a search is fitted with a budget of its own",
        "the search costs nothing, says the certificate",
        (Edit("fitting/tune.py", "_Search.reserve",
              "ledger.part(1 - self.share)",
              "Ledger(facts.budget)"),),
        (SEARCH + "test_search_and_fit_together_cost_the_budget_and_no_more[0.3-replace]",),
    ),
    Mutant(
        "costs are added, not their squares",
        "the certificate does not say what the noise was made for",
        (Edit(CERTIFICATE, "Certificate.mu",
              "math.sqrt(math.fsum((entry.mu ** 2 for entry in self.releases)))",
              "math.fsum((entry.mu for entry in self.releases))"),),
        (WHOLE,),
    ),
    Mutant(
        "the certificate counts the dearest release only",
        "epsilon is stated too low by the root of their number",
        (Edit(CERTIFICATE, "Certificate.mu",
              "math.sqrt(math.fsum((entry.mu ** 2 for entry in self.releases)))",
              "max((entry.mu for entry in self.releases), default=0.0)"),),
        (WHOLE,),
    ),
    Mutant(
        "delta is ignored, and 10^-5 used instead",
        "a delta of 10^-9 was promised",
        (Edit(BUDGET, "PrivacyBudget.mu",
              "mu_of(self.epsilon, self.delta)",
              "mu_of(self.epsilon, 1e-05)"),),
        (WHOLE,),
    ),
    Mutant(
        "delta is ignored everywhere, and 10^-5 used instead",
        "as above, and the ledger agrees with the mistake",
        (Edit(BUDGET, "mu_of",
              "_covers(epsilon, delta, mu)",
              "_covers(epsilon, 1e-05, mu)"),),
        (COSTS + "test_calibration_never_under_noises_and_wastes_nothing[1e-15-0.1]", WHOLE),
    ),
    Mutant(
        "epsilon is rounded to the generous side",
        "a claim that does not hold, by a hair",
        (Edit(BUDGET, "mu_of",
              "1.0 - _RELATIVE_SLACK",
              "1.0 + 0.001"),),
        (COSTS + "test_calibration_never_under_noises_and_wastes_nothing[1e-15-0.1]",),
    ),
    Mutant(
        "the number of users is published where it is protected",
        "whether she is there at all can be read off the certificate",
        (Edit("fitting/fit.py", "_facts",
              "None if protected else ratings.n_users",
              "ratings.n_users"),),
        (FITS + "test_the_number_of_users_is_protected_under_add_remove",),
    ),
    Mutant(
        "the grid of the sum follows the protected number of users",
        "the low bits of every release tell how many users there are",
        (Edit("trusted/mechanism.py", "Mechanism.public_users",
              "None if protected else self._engine.n_users",
              "self._engine.n_users"),),
        (TAUGHT + "test_the_grid_does_not_tell_a_protected_number_of_users",),
    ),
    Mutant(
        "no budget means no privacy, and nobody is asked",
        "someone who forgot epsilon publishes exact sums",
        (Edit("fitting/budgets.py", "budget_of",
              "raise ConfigError('give epsilon=..., or budget=PrivacyBudget(...); "
              "budget=None, by name, asks for a model that is NOT PRIVATE')",
              "return None\n"
              "raise ConfigError('give epsilon=..., or budget=PrivacyBudget(...); "
              "budget=None, by name, asks for a model that is NOT PRIVATE')"),),
        (FITS + "test_privacy_must_be_asked_for_or_declined_by_name",),
    ),
    Mutant(
        "a model with seeded noise calls itself private",
        "whoever knows the seed has the exact sums",
        (Edit("fitting/fit.py", "reasons_not_private",
              "options.noise_seed_unsafe is not None",
              "options.noise_seed_unsafe == 0"),),
        (FITS + "test_noise_differs_from_fit_to_fit_and_a_seed_undoes_the_promise",),
    ),
    Mutant(
        "a model with floating-point noise calls itself private",
        "its low bits leak, and the certificate does not say so",
        (Edit("fitting/fit.py", "reasons_not_private",
              "options.numerics is Numerics.IDEALISED",
              "False"),
         Edit(CERTIFICATE, "Certificate.__post_init__",
              'self.numerics == "idealised" and IDEALISED not in self.reasons_not_private',
              "False")),
        (FITS + "test_floating_point_noise_is_not_called_private",),
    ),
    Mutant(
        "a catalogue from the ratings is called public",
        "an item that one person alone has rated gives her away, and nobody is warned",
        (Edit("fitting/fit.py", "_catalogue_line",
              "ratings.catalogue.public",
              "ratings.catalogue is not None"),),
        (FITS + "test_a_catalogue_taken_from_the_ratings_is_listed_as_an_assumption",),
    ),
    Mutant(
        "verify believes the claim",
        "a forged certificate passes",
        (Edit(CERTIFICATE, "Certificate.verify",
              "not found <= self.budget.epsilon * (1 + _RELATIVE)",
              "False"),),
        (FILES + "test_a_forged_epsilon_does_not_verify",),
    ),
    Mutant(
        "two lists under add_remove cost as much as one presence",
        "the certificate says of a single rating what does not hold for it",
        (Edit("accounting/promise.py", "two_lists",
              "mu if neighbours is Neighbours.REPLACE else 2 * mu",
              "mu"),),
        (WORDS + "TestTwoLists::test_add_remove_says_two",),
    ),
    Mutant(
        "percentages are rounded to the nearest",
        "an upper bound is printed that is below the truth",
        (Edit("accounting/promise.py", "percent",
              "Decimal(above).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING)",
              "Decimal(above).quantize(Decimal(1).scaleb(-digits))"),),
        (WORDS + "TestPercentages::test_never_below_the_truth_and_never_far_above",),
    ),
    Mutant(
        "any epsilon is called private",
        "at epsilon 1000 an attacker is nearly always right, and the certificate makes a promise",
        (Edit(CERTIFICATE, "Certificate.__post_init__",
              "reason and reason not in self.reasons_not_private",
              "False"),),
        (WORDS + "TestNotPrivate::test_it_survives_json_once",),
    ),
)  # fmt: skip
