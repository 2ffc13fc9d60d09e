"""Mutants of what leaves: logs, messages, files, reprs and progress that tell of someone."""

from tests.mutants.mutant import Edit, Mutant

FITTING = "fitting.py"
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
        (Edit("private/rows.py", "def _bound(ratings: Ratings, bounds: RowBounds, run: Run) "
              "-> RowArrays:\n",
              "def _bound(ratings: Ratings, bounds: RowBounds, run: Run) -> RowArrays:\n"
              "    import logging\n\n"
              '    logging.getLogger(__name__).debug("%d ratings", ratings.items.size)\n'),),
        (WALLS + "test_the_trust_zone_writes_no_logs[private/rows.py]",
         ONLY + "[frank-wolfe]"),
    ),
    Mutant(
        "a line in the log outside of the trust zone",
        "as above, where no wall forbids it",
        (Edit(FITTING, "    engine.take(ratings)\n    with _journal",
              "    import logging\n\n"
              '    logging.getLogger(__name__).info("%d ratings", ratings.items.size)\n'
              "    engine.take(ratings)\n    with _journal"),),
        (ONLY + "[frank-wolfe]", SAME + "[frank-wolfe]"),
    ),
    Mutant(
        "a warning where someone has few ratings",
        "whether it comes depends on one person",
        (Edit(FITTING, "    engine.take(ratings)\n    with _journal",
              "    if (ratings.indptr[1:] - ratings.indptr[:-1]).min() < 3:\n"
              '        warnings.warn("a user with few ratings", TacitWarning, stacklevel=2)\n'
              "    engine.take(ratings)\n    with _journal"),),
        (ONLY + "[frank-wolfe]",),
    ),
    Mutant(
        "the certificate states how many ratings there are",
        "a number that nobody has paid for, in what is published",
        (Edit(FITTING, '    public["catalogue"] = _catalogue_line',
              '    public["ratings"] = f"{ratings.items.size}"\n'
              '    public["catalogue"] = _catalogue_line'),),
        (SAME + "[frank-wolfe]", ONLY + "[frank-wolfe]"),
    ),
    Mutant(
        "user ids go into the model file",
        "the list of everyone who gave ratings is published",
        (Edit(FITTING, "    return Model(rule, ratings.catalogue, ratings.rating_range, "
              "certificate, releases)",
              "    model = Model(rule, ratings.catalogue, ratings.rating_range, certificate, "
              'releases)\n    object.__setattr__(model, "users", ratings.user_ids.to_list())\n'
              "    return model"),
         Edit(MODEL_FILE, '        "releases": model.releases,\n',
              '        "releases": model.releases,\n'
              '        "users": getattr(model, "users", []),\n')),
        (FILES + "test_saving_leaves_no_trace_of_users",),
    ),
    Mutant(
        "local state goes into the model file",
        "everyone's own row length, or whatever else is kept of her, is published",
        (Edit(FITTING, "    return Model(rule, ratings.catalogue, ratings.rating_range, "
              "certificate, releases)",
              "    model = Model(rule, ratings.catalogue, ratings.rating_range, certificate, "
              'releases)\n    object.__setattr__(model, "state", ratings.indptr)\n'
              "    return model"),
         Edit(MODEL_FILE, "    tensors |= _catalogue_arrays(model.catalogue)\n",
              "    tensors |= _catalogue_arrays(model.catalogue)\n"
              '    tensors["local.state"] = getattr(model, "state", np.zeros(1, np.int64))\n')),
        (SAME + "[frank-wolfe]",),
    ),
    Mutant(
        "the progress bar counts ratings",
        "a number from the ratings on the screen, and in the log of whoever called",
        (Edit("cli/fit.py", "    model = with_bar(lambda bar: fit(",
              '    typer.echo(f"{rows.items.size} ratings", err=True)\n'
              "    model = with_bar(lambda bar: fit("),),
        (COMMANDS + "[text]",),
    ),
    Mutant(
        "progress tells how far the sum has moved",
        "a callback gets a number that was not released",
        (Edit("private/mechanism.py", "self._progress(number, len(self._ledger.reserved))",
              "self._progress(number, len(self._ledger.reserved)\n"
              "                + self._engine._rows.indptr[-1])"),),
        ("tests/test_fitting.py::test_progress_counts_planned_releases_only",
         ONLY + "[frank-wolfe]"),
    ),
    Mutant(
        "the journal keeps the ratings' length beside a release",
        "names and sizes of checkpoint files depend on someone's row",
        (Edit("private/journal.py", "        self._lock.close()\n",
              "        self._lock.close()\n"
              '        (self._folder / "done").write_bytes(b"x" * int(about_size(self)))\n'),
         Edit("private/journal.py", "def _hold(path: Path)",
              "def about_size(journal: Journal) -> int:\n"
              '    """How large the fit was."""\n'
              "    return int(json.loads((journal._folder / _ABOUT).read_bytes())"
              '["ratings"][:3], 16)\n\n\n'
              "def _hold(path: Path)")),
        (ONLY + "[frank-wolfe]",),
    ),
    Mutant(
        "an error shows the rating that it is about",
        "it ends up in a log, a ticket, a chat",
        (Edit("assembly.py",
              '            f"column {name!r}: {rows_text(outside)} outside of the rating range "\n',
              '            f"column {name!r}: {rows_text(outside)} ({max(p.max() for p in pieces)})'
              ' outside of the rating range "\n'),),
        (REFUSED + "test_bad_frames_are_refused[too high]",
         LEAVES + "test_errors_are_the_same_for_neighbours[rating out of range]"),
    ),
    Mutant(
        "an error shows whose ratings it is about",
        "as above, with her name",
        (Edit("assembly.py", "    check_rows(rows, names, rules.duplicates)\n    known",
              '    named = names | {"user": f"user of {users.ids(np.arange(1))[0]}"}\n'
              "    check_rows(rows, named, rules.duplicates)\n    known"),),
        (REFUSED + "test_bad_frames_are_refused[repeated]",),
    ),
    Mutant(
        "rows say how many they are when printed",
        "a debugger, a traceback or a notebook shows it",
        (Edit("private/rows.py", 'return "<rows of people\'s ratings: nothing to see>"',
              'return f"<{self.__ratings.indptr[-1]} ratings>"'),),
        (MECHANISM + "test_what_is_private_neither_prints_nor_pickles[secret1]",),
    ),
    Mutant(
        "a sum before noise can be pickled",
        "it goes to another process, a cache, a file",
        (Edit("private/statistic.py",
              "    def __reduce__(self) -> NoReturn:\n"
              '        raise PrivacyError("a sum before noise cannot be pickled; seal it")\n',
              ""),),
        (MECHANISM + "test_what_is_private_neither_prints_nor_pickles[secret0]",),
    ),
)  # fmt: skip
