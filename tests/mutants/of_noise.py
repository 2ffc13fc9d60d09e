"""Mutants of the noise: how it is drawn, how much of it, how often, and where it is kept."""

from tests.mutants.edits import Edit
from tests.mutants.mutant import Mutant

MECHANISM = "trusted/mechanism.py"
SAMPLER = "trusted/sampler.py"
LOOPS = "trusted/exact_normal.py"
FAR = "trusted/normal_tail.py"
JOURNAL = "trusted/journal.py"

TESTS = "tests/privacy/test_mechanism.py::"
SAMPLES = "tests/privacy/test_sampler.py::"
LAW = "tests/privacy/test_sampler_law.py::"
CRASHES = "tests/test_checkpoint.py::"
FITS = "tests/test_fitting.py::"
TAUGHT = "tests/privacy/test_what_mutants_taught.py::"
WALLS = "tests/architecture/test_structure.py::"
EVERY_SUM = (
    "tests/contracts/test_algorithms.py::TestEveryAlgorithm::"
    "test_every_sum_is_in_the_ledger_with_its_sensitivity_and_noise"
)

NOISE = (
    Mutant(
        "half the noise",
        "mu doubles, and epsilon more than doubles",
        (Edit(MECHANISM, "Mechanism._release",
              "self._draw(self._noise, noisy.size, bits).reshape(noisy.shape)",
              "self._draw(self._noise, noisy.size, bits).reshape(noisy.shape) // 2"),),
        (TESTS + "test_noise_has_the_sd_of_the_ledger_and_no_other[replace]",),
    ),
    Mutant(
        "the unit is one bit too fine, the noise is drawn for the other one",
        "the noise that is added is half of what the ledger says",
        (Edit(MECHANISM, "Mechanism._grid",
              "-bits",
              "-bits - 1"),),
        (TESTS + "test_the_grid_depends_on_public_numbers_only_and_the_sd_is_a_power_of_two_units",
         TESTS + "test_noise_has_the_sd_of_the_ledger_and_no_other[add_remove]"),
    ),
    Mutant(
        "noise for the first release only",
        "all later sums leave as they are",
        (Edit(MECHANISM, "Mechanism._release",
              "self._ledger.private",
              "self._ledger.private and number == 1"),),
        (EVERY_SUM + "[frank-wolfe-replace]",),
    ),
    Mutant(
        "one triangle mirrored, with the sd of the whole matrix",
        "the noise has another law than algorithms and certificates reckon with",
        (Edit(MECHANISM, "_values",
              "(values + values.T) / 2",
              "np.triu(values) + np.triu(values, 1).T"),),
        (TESTS
         + "test_symmetric_noise_has_sd_s_on_the_diagonal_and_less_by_sqrt2_elsewhere",),
    ),
    Mutant(
        "symmetric noise cut by sqrt2 before it is averaged, which cuts it again",
        "every covariance costs sqrt2 times what the ledger says",
        (Edit(MECHANISM, "Mechanism._release",
              "noisy = noisy + self._draw(self._noise, noisy.size, "
              "bits).reshape(noisy.shape)",
              "noise = self._draw(self._noise, noisy.size, bits).reshape(noisy.shape)\n"
              "if statistic.symmetric:\n"
              "    noise = np.rint(noise / math.sqrt(2.0)).astype(np.int64)\n"
              "noisy = noisy + noise"),),
        (TESTS
         + "test_symmetric_noise_has_sd_s_on_the_diagonal_and_less_by_sqrt2_elsewhere",),
    ),
    Mutant(
        "the same noise for every entry of a row",
        "differences of entries leave without any noise",
        (Edit(MECHANISM, "Mechanism._release",
              "noisy = noisy + self._draw(self._noise, noisy.size, "
              "bits).reshape(noisy.shape)",
              "noise = self._draw(self._noise, noisy.shape[0], bits)\n"
              "noisy = noisy + noise.reshape(-1, *[1] * (noisy.ndim - 1))"),),
        (EVERY_SUM + "[frank-wolfe-replace]",),
    ),
    Mutant(
        "every release begins the same stream",
        "with a seed, the difference of two releases has no noise in it",
        (Edit(MECHANISM, "Mechanism._release",
              "self._noise.start(number)",
              "self._noise.start(1)"),),
        (TESTS + "test_releases_and_entries_are_independent",),
    ),
    Mutant(
        "a seed of its own where none was asked for",
        "anyone can draw the noise again and take it off",
        (Edit("fitting/fit.py", "_mechanism",
              "SystemNoise() if seed is None else SeededNoiseUnsafe(seed)",
              "SeededNoiseUnsafe(seed or 0)"),),
        (FITS + "test_noise_differs_from_fit_to_fit_and_a_seed_undoes_the_promise",),
    ),
    Mutant(
        "the system's generator is read once and kept",
        "two releases, or two fits, share their noise",
        (Edit(SAMPLER, "SystemNoise.words",
              "return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
              "kept = self.__dict__.setdefault('kept', os.urandom(1 << 24))\n"
              "return np.frombuffer(kept[:8 * count], dtype=np.uint64)"),),
        (SAMPLES + "test_system_noise_never_repeats",),
    ),
    Mutant(
        "a block of random words is fetched once and used for all blocks",
        "noise repeats after a quarter of a million values, and falls out of differences",
        (Edit(SAMPLER, "floor_normals",
              "filled = 0",
              "filled, words = 0, source.words(_BLOCK)"),
         Edit(SAMPLER, "floor_normals",
              "words = source.words(min(wanted, _BLOCK))",
              "")),
        (TAUGHT + "test_noise_does_not_repeat_from_block_to_block",),
    ),
    Mutant(
        "floating-point noise where exact noise was asked for",
        "its low bits tell sums apart",
        (Edit(MECHANISM, "Mechanism.__init__",
              "floor_normals if numerics is Numerics.EXACT else idealised_normals",
              "idealised_normals"),),
        (EVERY_SUM + "[frank-wolfe-replace]",),
    ),
    Mutant(
        "the rejection step of the sampler is left out",
        "the noise is not Gaussian, and the accounting does not hold for it",
        (Edit(LOOPS, "_draw",
              "_accept(np.int64(word >> np.uint64(55)), j, x, trio, words, tape)",
              "True"),),
        (SAMPLES + "test_it_is_normal_with_the_stated_sd_and_no_other",),
    ),
    Mutant(
        "a step of the acceptance run is thinned the wrong way round",
        "too many values are accepted, and the noise is not Gaussian",
        (Edit(LOOPS, "_thinned",
              "choice < 2 * j",
              "choice > 2 * j"),),
        (LAW + "test_acceptance_has_its_closed_form_point_by_point",
         LAW + "test_the_loops_do_what_a_second_writing_does[16]"),
    ),
    Mutant(
        "a tie of the thinning is decided the wrong way round",
        "the noise is off by a part in a thousand, most near zero",
        (Edit(LOOPS, "_thinned",
              "_less(spare, x, words, tape)",
              "_less(x, spare, words, tape)"),),
        (LAW + "test_acceptance_has_its_closed_form_point_by_point",
         LAW + "test_the_loops_do_what_a_second_writing_does[16]"),
    ),
    Mutant(
        "the acceptance run is thinned by digits of a deviate that was used before",
        "acceptance is off by 0.1 % at 2.5 sd and by 5 % at 6 sd",
        (Edit(LOOPS, "_accept",
              "_next(words, tape)",
              "last[0]"),),
        (LAW + "test_acceptance_has_its_closed_form_point_by_point",
         LAW + "test_the_loops_do_what_a_second_writing_does[16]"),
    ),
    Mutant(
        "the noise ends at 16 standard deviations",
        "at a large epsilon one of two neighbours reaches what the other cannot",
        (Edit(LOOPS, "_cell",
              "j < CELLS",
              "j < CELLS - 1"),),
        (LAW + "test_values_beyond_16_sd_are_drawn_when_the_table_says_so",),
    ),
    Mutant(
        "cells of the tail fall off as exp(-i), without their square",
        "far out the noise is not Gaussian, which a large epsilon can see",
        (Edit(FAR, "tail_cell",
              "divmod(i * i, 512)",
              "(0, 0)"),),
        (LAW + "test_tail_cells_are_tried_as_their_law_says[40]",),
    ),
    Mutant(
        "one factor of the acceptance in the tail instead of all",
        "values far out come too often",
        (Edit(FAR, "accept",
              "range(factors)",
              "range(1)"),),
        (LAW + "test_acceptance_in_the_tail_has_its_closed_form[2000-0.1-4000]",),
    ),
    Mutant(
        "words from a generator that is seeded with four of the system's bytes",
        "there are 2^32 noises, and all of them can be tried",
        (Edit(SAMPLER, "SystemNoise.words",
              "return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
              "seed = int.from_bytes(os.urandom(4), 'little')\n"
              "return np.random.Philox(seed).random_raw(count)"),),
        (LAW + "test_noise_is_made_of_the_systems_words_each_used_once",),
    ),
    Mutant(
        "the sign is a bit that was used before",
        "sign and size of the noise depend on each other",
        (Edit(LOOPS, "_signed",
              "word & np.uint64(1)",
              "word >> np.uint64(63)"),),
        (SAMPLES + "test_sign_and_size_are_independent",),
    ),
    Mutant(
        "each thread's engine adds its own noise",
        "noise outside of the ledger, and as much as there are cores",
        (Edit("engines/threads.py", "",
              "from tacit.trusted.rows import Rows",
              "from tacit.trusted.rows import Rows\n"
              "from tacit.trusted.sampler import SystemNoise, floor_normals"),
         Edit("engines/threads.py", "ThreadEngine.sum",
              "return statistic.bounded_sum(self._rows, unit, run)",
              "units = statistic.integer_sum(self._rows, unit, run)\n"
              "noise = floor_normals(SystemNoise(), units.size, 20)\n"
              "return BoundedSum(units + noise.reshape(units.shape), unit, statistic)")),
        (WALLS + "test_only_the_mechanism_draws_noise",
         FITS + "test_releases_do_not_depend_on_threads_or_the_order_of_users"),
    ),
    Mutant(
        "what was released before a crash is drawn again",
        "two releases of one sum at the price of one",
        (Edit(MECHANISM, "Mechanism.release",
              "self._journal.read(number, entry) if self._journal else None",
              "None"),),
        (CRASHES + "test_what_was_released_is_not_drawn_again",),
    ),
    Mutant(
        "a release is shown first and written to the journal afterwards",
        "killed in between, a fit draws again what somebody has seen",
        (Edit(MECHANISM, "Mechanism.release",
              "if values is None:\n"
              "    values = self._release(number, statistic, entry)\n"
              "    if self._journal:\n"
              "        self._journal.write(number, entry, values)\n"
              "if self._progress:\n"
              "    self._progress(number, len(self._ledger.reserved))",
              "if values is None:\n"
              "    values = self._release(number, statistic, entry)\n"
              "if self._progress:\n"
              "    self._progress(number, len(self._ledger.reserved))\n"
              "if self._journal:\n"
              "    self._journal.write(number, entry, values)"),),
        (TAUGHT + "test_a_release_is_on_disk_before_anyone_hears_of_it",),
    ),
    Mutant(
        "the journal writes in groups of three",
        "a crash loses releases, and they are drawn again",
        (Edit(MECHANISM, "Mechanism.release",
              "if self._journal:\n"
              "    self._journal.write(number, entry, values)",
              "if self._journal and number % 3 == 0:\n"
              "    self._journal.write(number, entry, values)"),),
        (CRASHES + "test_kill_9_of_a_real_process_keeps_every_release",),
    ),
    Mutant(
        "files are not synced",
        "a power cut takes releases back that were used",
        (Edit("_atomic.py", "durable_file",
              "os.fsync(file.fileno())",
              ""),),
        (CRASHES + "test_a_full_disk_loses_nothing",),
    ),
    Mutant(
        "the checkpoint does not know whose ratings it belongs to",
        "releases of other people's ratings go into this fit, and it says nothing",
        (Edit("fitting/fit.py", "_journal", "ratings.digest()", "''"),),
        (CRASHES + "test_a_checkpoint_of_another_fit_is_refused[ratings-changes0]",),
    ),
    Mutant(
        "the journal takes any release for the one it looks for",
        "a release with less noise is passed off as another",
        (Edit(JOURNAL, "_decode",
              "written != [entry.name, entry.sensitivity, entry.noise_sd]",
              "False"),),
        (CRASHES + "test_releases_in_the_wrong_place_are_noticed",),
    ),
    Mutant(
        "the checkpoint is readable by everyone on the machine",
        "it has a fingerprint of the ratings, against which guesses can be tried",
        (Edit(JOURNAL, "Journal._compare",
              "write_durably(path, json.dumps(about, indent=1).encode(), owner_only=True)",
              "write_durably(path, json.dumps(about, indent=1).encode())"),),
        (CRASHES + "test_the_folder_is_for_its_owner_only",),
    ),
    Mutant(
        "two processes may use one checkpoint",
        "both draw the next release, and one of them is lost",
        (Edit("_atomic.py", "hold",
              "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
              "fcntl.LOCK_EX"),),
        (CRASHES + "test_two_at_once_are_refused",),
    ),
)  # fmt: skip
