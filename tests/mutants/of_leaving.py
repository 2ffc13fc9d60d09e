"""Mutants of what leaves: logs, messages, files, reprs and progress that tell of someone."""

from tests.mutants.edits import Edit
from tests.mutants.mutant import Mutant

FITTING = "fitting/fit.py"
MODEL_FILE = "models/file.py"

LEAVES = "tests/privacy/test_what_leaves.py::"
SAME = LEAVES + "test_with_the_same_releases_everything_else_is_the_same_too"
ONLY = LEAVES + "test_with_the_same_noise_only_releases_differ"
COMMANDS = LEAVES + "test_on_the_command_line_only_releases_differ"
WALLS = "tests/architecture/test_structure.py::"
FILES = "tests/test_model_file.py::"
REFUSED = "tests/test_ratings_refused.py::"
MECHANISM = "tests/privacy/test_mechanism.py::"

LEAVING = (
    Mutant(
        "a line in the log of the trust zone, with a number from the ratings",
        "the log is kept for years, and read by many",
        (Edit("trusted/rows.py", "_bound",
              "indptr, items, values = _choice(inside, bounds, run)",
              "import logging\n"
              "logging.getLogger(__name__).debug('%d ratings', ratings.items.size)\n"
              "indptr, items, values = _choice(inside, bounds, run)"),),
        (WALLS + "test_the_trust_zone_writes_no_logs[trusted/rows.py]",
         ONLY + "[frank-wolfe]"),
    ),
    Mutant(
        "a line in the log outside of the trust zone",
        "as above, where no wall forbids it",
        (Edit(FITTING, "run_plan",
              "public = _public(ratings, facts)",
              "public = _public(ratings, facts)\n"
              "import logging\n"
              "logging.getLogger(__name__).info('%d ratings', ratings.items.size)"),),
        (ONLY + "[frank-wolfe]", SAME + "[frank-wolfe]"),
    ),
    Mutant(
        "a warning where someone has few ratings",
        "whether it comes depends on one person",
        (Edit(FITTING, "run_plan",
              "public = _public(ratings, facts)",
              "public = _public(ratings, facts)\n"
              "if (ratings.indptr[1:] - ratings.indptr[:-1]).min() < 3:\n"
              "    import warnings\n"
              "    warnings.warn('a user with few ratings', UserWarning, stacklevel=2)"),),
        (ONLY + "[frank-wolfe]",),
    ),
    Mutant(
        "the certificate states how many ratings there are",
        "a number that nobody has paid for, in what is published",
        (Edit(FITTING, "_public",
              "public['catalogue'] = _catalogue_line(ratings, facts.n_items)",
              "public['ratings'] = f'{ratings.items.size}'\n"
              "public['catalogue'] = _catalogue_line(ratings, facts.n_items)"),),
        (SAME + "[frank-wolfe]", ONLY + "[frank-wolfe]"),
    ),
    Mutant(
        "user ids go into the model file",
        "the list of everyone who gave ratings is published",
        (Edit(FITTING, "run_plan",
              "return use_features(model, ratings.catalogue)",
              "model = use_features(model, ratings.catalogue)\n"
              "object.__setattr__(model, 'users', ratings.user_ids.to_list())\n"
              "return model"),
         Edit(MODEL_FILE, "save",
              "_catalogue_facts(model.catalogue)",
              "{**_catalogue_facts(model.catalogue), 'users': getattr(model, 'users', [])}")),
        (FILES + "test_saving_leaves_no_trace_of_users",),
    ),
    Mutant(
        "local state goes into the model file",
        "everyone's own row length, or whatever else is kept of her, is published",
        (Edit(FITTING, "run_plan",
              "return use_features(model, ratings.catalogue)",
              "model = use_features(model, ratings.catalogue)\n"
              "object.__setattr__(model, 'state', ratings.indptr)\n"
              "return model"),
         Edit(MODEL_FILE, "save",
              "tensors |= _catalogue_arrays(model.catalogue)",
              "tensors |= _catalogue_arrays(model.catalogue)\n"
              "tensors['local.state'] = getattr(model, 'state', np.zeros(1, np.int64))")),
        (SAME + "[frank-wolfe]",),
    ),
    Mutant(
        "the progress bar counts ratings",
        "a number from the ratings on the screen, and in the log of whoever called",
        (Edit("cli/sources.py", "learned",
              "rows = read()",
              "rows = read()\n"
              "typer.echo(f'{rows.items.size} ratings', err=True)"),),
        (COMMANDS + "[text]",),
    ),
    Mutant(
        "progress tells how far the sum has moved",
        "a callback gets a number that was not released",
        (Edit("trusted/mechanism.py", "Mechanism.release",
              "len(self._ledger.reserved)",
              "len(self._ledger.reserved) + self._engine._rows.indptr[-1]"),),
        ("tests/test_fitting.py::test_progress_counts_planned_releases_only",
         ONLY + "[frank-wolfe]"),
    ),
    Mutant(
        "the journal keeps the ratings' length beside a release",
        "names and sizes of checkpoint files depend on someone's row",
        (Edit("trusted/journal.py", "Journal.close",
              "self._lock.close()",
              "self._lock.close()\n"
              "(self._folder / 'done').write_bytes(b'x' * int(about_size(self)))"),
         Edit("trusted/journal.py", "",
              '_ABOUT = "fit.json"',
              '_ABOUT = "fit.json"\n'
              "def about_size(journal):\n"
              "    return int(json.loads((journal._folder / "
              "_ABOUT).read_bytes())['ratings'][:3], 16)")),
        (ONLY + "[frank-wolfe]",),
    ),
    Mutant(
        "an error shows the rating that it is about",
        "it ends up in a log, a ticket, a chat",
        (Edit("data/build.py", "check_values",
              "f'column {name!r}: {rows_text(outside)} outside of the rating range "
              "[{rating_range[0]:g}, {rating_range[1]:g}]; give the range of the scale that people "
              "rate on, or correct those rows'",
              "f'column {name!r}: {rows_text(outside)} ({max((p.max() for p in "
              "pieces))}) outside of the rating range [{rating_range[0]:g}, "
              "{rating_range[1]:g}]; give the range of the scale that people rate on, or "
              "correct those rows'"),),
        (REFUSED + "test_bad_frames_are_refused[too high]",
         LEAVES + "test_errors_are_the_same_for_neighbours[rating out of range]"),
    ),
    Mutant(
        "an error shows whose ratings it is about",
        "as above, with her name",
        (Edit("data/build.py", "assembled",
              "_check_rows(settled, names, rules)",
              "named = names | {'user': f'user of {users.ids(np.arange(1))[0]}'}\n"
              "_check_rows(settled, named, rules)"),),
        (REFUSED + "test_bad_frames_are_refused[repeated]",),
    ),
    Mutant(
        "rows say how many they are when printed",
        "a debugger, a traceback or a notebook shows it",
        (Edit("trusted/rows.py", "Rows.__repr__",
              'return "<rows of people\'s ratings: nothing to see>"',
              "return f'<{self.__ratings.indptr[-1]} ratings>'"),),
        (MECHANISM + "test_what_is_private_neither_prints_nor_pickles[rows]",),
    ),
    Mutant(
        "a sum before noise can be pickled",
        "it goes to another process, a cache, a file",
        (Edit("trusted/statistic.py", "BoundedSum",
              "def __reduce__(self) -> NoReturn:\n"
              "    raise PrivacyError('a sum before noise cannot be pickled; seal it')",
              ""),),
        (MECHANISM + "test_what_is_private_neither_prints_nor_pickles[a sum]",),
    ),
)  # fmt: skip
