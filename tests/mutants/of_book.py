"""Mutants of the lifetime book: spending twice, forgetting, old copies, clocks and two writers."""

from tests.mutants.edits import Edit
from tests.mutants.mutant import Mutant

BOOK_FILE = "book/book.py"
ACCOUNT = "book/account.py"

TESTS = "tests/book/test_book.py::"
CRASHES = "tests/book/test_crashes.py::"
AT_ONCE = "tests/book/test_at_once.py::"
REFITS = "tests/book/test_refit.py::"
GOING_ON = "tests/book/test_going_on.py::"

BOOKS = (
    Mutant(
        "a book that does not refuse",
        "the limit of a lifetime is a number on paper",
        (Edit(BOOK_FILE, "Book._refuse", "not cost <= room", "False"),),
        (TESTS + "test_costs_add_up_as_squares_to_the_limit_and_no_further",
         TESTS + "test_a_refused_fit_reads_nothing_and_spends_nothing"),
    ),
    Mutant(
        "epsilons are compared, not costs",
        "ten fits at 0.1 are taken for one at 1, in the one direction or the other",
        (Edit(BOOK_FILE, "Book.reserve",
              "cost = mu_of(budget.epsilon, budget.delta) ** 2",
              "cost = mu_of(budget.epsilon, budget.delta) * 0.01"),),
        (TESTS + "test_costs_add_up_as_squares_to_the_limit_and_no_further",),
    ),
    Mutant(
        "a reservation counts for nothing until it is closed",
        "a process that is killed has spent nothing, and two at once spend twice",
        (Edit(ACCOUNT, "FitRecord.cost",
              "self.reserved if self.state == 'reserved' else self.settled", "self.settled"),),
        (TESTS + "test_costs_add_up_as_squares_to_the_limit_and_no_further",
         TESTS + "test_a_checkpoint_that_is_resumed_is_paid_once"),
    ),
    Mutant(
        "a fit is closed at less than its releases cost",
        "a release is forgotten",
        (Edit("book/reservation.py", "Reservation.close",
              "total_cost(made)", "total_cost(made[1:])"),),
        (TESTS + "test_a_fit_is_in_the_book_with_every_release_and_its_certificate",),
    ),
    Mutant(
        "an error gives everything back, whatever was drawn",
        "a fit that is stopped before its end is free",
        (Edit("book/reservation.py", "Reservation.stop",
              "self._ledger.entries if self._ledger is not None else ()", "()"),),
        (TESTS + "test_an_error_gives_back_what_was_not_drawn",),
    ),
    Mutant(
        "a checkpoint is paid anew each time",
        "a fit that crashed costs twice: nobody is harmed, but the budget is gone",
        (Edit(BOOK_FILE, "Book.reserve", "record is not None", "False"),),
        (TESTS + "test_a_checkpoint_that_is_resumed_is_paid_once",),
    ),
    Mutant(
        "releases that are gone from a checkpoint are drawn again",
        "a second release of the same statistic that nobody pays for",
        (Edit("book/reservation.py", "_check_resumed", "files < len(record.releases)", "False"),),
        (TESTS + "test_releases_that_are_gone_from_a_checkpoint_are_not_drawn_again",),
    ),
    Mutant(
        "an old copy is taken for the book",
        "whatever was spent since is spent again",
        (Edit("book/counter.py", "compare", "count > len(events)", "False"),
         Edit("book/counter.py", "compare",
              "events[count - 1].digest != digest", "False")),
        (TESTS + "test_an_old_copy_is_noticed",
         CRASHES + "test_a_copy_without_its_log_is_an_old_copy"),
    ),
    Mutant(
        "the chain is not checked",
        "costs can be edited in the file",
        (Edit("book/events.py", "read_chain",
              "event.digest != _digest(event.number, event.at, event.what, event.previous)",
              "False"),
         Edit("book/events.py", "read_chain",
              "event.previous != (last.digest if last else FIRST)", "False")),
        (TESTS + "test_a_changed_book_is_not_used[terms]",),
    ),
    Mutant(
        "the clock decides the year",
        "who sets it back, or has a machine without a battery, has a new year's budget",
        (Edit(ACCOUNT, "Account.left_this_year", "max(moment, last)", "moment"),
         Edit("book/events.py", "next_event",
              "last is not None and moment < _moment(last.at)", "False")),
        (TESTS + "test_a_clock_that_is_set_back_opens_no_closed_year",),
    ),
    Mutant(
        "two writers do not wait for each other",
        "both see the same rest, and both spend it",
        (Edit("book/store.py", "Store.writing",
              "connection.execute('BEGIN IMMEDIATE')", "None"),
         Edit("book/store.py", "Store.writing", "connection.execute('COMMIT')", "None")),
        (TESTS + "test_a_writer_that_comes_in_between_has_to_wait",),
    ),
    Mutant(
        "a fit of another relation is counted as if it were of this one",
        "its cost may be twice what the book says",
        (Edit(BOOK_FILE, "Book._check",
              "budget.neighbours is not self.neighbours", "False"),),
        (TESTS + "test_delta_and_relation_are_those_of_the_book_unless_given",),
    ),
    Mutant(
        "what is not private is counted as if it were",
        "a seed undoes the noise, and the book says epsilon 0.1",
        (Edit("fitting/fit.py", "fit", "reasons_not_private(options)", "()"),),
        (TESTS + "test_what_is_not_private_has_no_place_in_a_book[seed]",),
    ),
    Mutant(
        "merged books forget one of them",
        "what it paid for is free again",
        (Edit("book/merging.py", "merge", "_all_fits(accounts)", "_all_fits(accounts[:1])"),),
        (TESTS + "test_a_copy_that_went_its_own_way_is_noticed_and_merged",
         TESTS + "test_merged_books_may_have_spent_too_much_and_say_so"),
    ),
    Mutant(
        "a book may have two names",
        "each has a log and a counter of its own: what is spent by one is unknown to the other",
        (Edit("book/store.py", "_check_file", "state.st_nlink > 1", "False"),),
        (TESTS + "test_a_book_with_a_second_name_is_refused",),
    ),
    Mutant(
        "the counter is written while others write",
        "it can go back, and an older copy of the book passes for the newest",
        (Edit("book/store.py", "Store.held", "connection.execute('BEGIN IMMEDIATE')", "None"),),
        (AT_ONCE + "test_a_counter_that_is_slow_does_not_go_back",),
    ),
    Mutant(
        "the later of two refits at once does not count what it paid",
        "models of later refits claim less than the releases that they rest on",
        (Edit("fitting/joining.py", "joined",
              "float(theirs.about.get('spent', 0.0)) + paid", "float(theirs.about['spent'])"),),
        (AT_ONCE + "test_of_two_refits_at_once_both_are_remembered[algorithm0]",),
    ),
    Mutant(
        "a refit that rests on what is forgotten is remembered",
        "models of later refits rest on releases that their certificates leave out",
        (Edit("fitting/joining.py", "joined", "not of_one_series", "False"),),
        (AT_ONCE + "test_a_refit_that_rests_on_what_is_forgotten_is_not_remembered",),
    ),
    Mutant(
        "a refit that goes on believes what its folder says it began with",
        "with another memory, of which less was spent, its certificate claims too little",
        (Edit("book/reservation.py", "begun_with", "digest_of(begun) != remembered", "False"),),
        (GOING_ON + "test_what_it_began_with_is_known_by_the_chain",),
    ),
    Mutant(
        "a refit draws a release twice and uses the better one",
        "twice the cost of what the ledger says",
        (Edit("fitting/remembering.py", "Remembering._together",
              "drawn = super().release(release, framed)",
              "drawn = super().release(release, framed)\n"
              "drawn = (drawn + self._release(1, framed, self._ledger.entries[-1])) / 2"),),
        (REFITS + "test_a_refit_costs_what_a_fit_costs_and_draws_every_release_once",),
    ),
    Mutant(
        "what is remembered is told to have no noise",
        "noise passes for taste: people get recommendations made of nothing",
        (Edit("fitting/remembering.py", "Remembering._together",
              "self._made[release.name] = self._users * math.sqrt(usual)",
              "self._made[release.name] = 0.1 * self._users * math.sqrt(usual)"),),
        (REFITS + "test_the_noise_that_algorithms_are_told_is_that_of_what_they_get",),
    ),
)  # fmt: skip
