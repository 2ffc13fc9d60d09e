"""Mutants of the bounds: what one person can add, and what is said about it."""

from tests.mutants.edits import Edit
from tests.mutants.mutant import Mutant

LOOPS = "kernels/residuals.py"
ROWS = "kernels/rows.py"
QUANTISER = "kernels/quantise.py"
ITEMS = "kernels/items.py"
POSTERIORS = "kernels/latent.py"
SYSTEM = "kernels/own_system.py"
BASE = "trusted/statistic.py"

FIRST = "tests/privacy/test_sensitivity.py::"
MORE = "tests/privacy/test_sensitivity_more.py::"
MOMENTS = "tests/privacy/test_sensitivity_moments.py::"
PREPARED = "tests/privacy/test_sensitivity_preparation.py::"
EQUATIONS = "tests/privacy/test_sensitivity_als.py::"
LATENT = "tests/privacy/test_sensitivity_latent.py::"
FITS = "tests/test_fitting.py::"
TAUGHT = "tests/privacy/test_what_mutants_taught.py::"
FURTHER = "test_no_neighbour_moves_a_sum_further_than_stated"
NOBODY_ELSE = "test_a_users_row_moves_nobody_elses_term"
ORDER = "test_sums_do_not_depend_on_threads_or_order"

RETURNS_SUM = "return total + np.triu(total, 1).T if self.symmetric else total.reshape(self.shape)"
NO_CLIP = (
    Edit(LOOPS, "_add_covariances",
         "clip_factor(np.sqrt(squared), quanta.bound) / quanta.quantum",
         "1.0 / quanta.quantum"),
    Edit(QUANTISER, "quantise",
         "squared <= most_squared",
         "squared >= 0"),
)  # fmt: skip

BOUNDS = (
    Mutant(
        "residuals are not clipped",
        "a person with a long row moves the sum as far as she likes",
        NO_CLIP,
        (FIRST + FURTHER + "[covariance after steps, tight clip]",),
    ),
    Mutant(
        "the sum is clipped, not its terms",
        "the bound holds for everyone together, and for nobody by herself",
        (*NO_CLIP,
         Edit("trusted/statistic.py", "Statistic.finish",
              RETURNS_SUM,
              "most = 24 * 2.0**40\n"
              "length = float(np.linalg.norm(total.astype(np.float64)))\n"
              "total = (total * min(1.0, most / max(length, 1.0))).astype(np.int64)\n"
              + RETURNS_SUM)),
        (FIRST + FURTHER + "[covariance after steps, tight clip]",),
    ),
    Mutant(
        "the quantiser does not count the last numbers of a vector",
        "one rating by itself is as long as it likes",
        (Edit("kernels/lanes.py", "put_rounded",
              "total += last * last",
              "total += 0.0 * last"),),
        ("tests/privacy/test_quantise.py::test_the_bound_holds_for_any_vector_and_any_factor",),
    ),
    Mutant(
        "the clip is made in floating point and not checked in integers",
        "rounding lengthens rows beyond the bound",
        (NO_CLIP[1],),
        (FIRST + "test_clipping_holds_in_integers_however_coarse_the_grid",),
    ),
    Mutant(
        "products are not clipped",
        "as above, for Algorithm 2",
        (Edit(LOOPS, "_clipped",
              "_shorten(residual[:size], bound, 1.0)",
              ""),),
        (MORE + FURTHER + "[product, three columns, after steps, tight clip]",),
    ),
    Mutant(
        "rows are not scaled down to their norm",
        "sums of rows, which rely on it, have no bound",
        (Edit(ROWS, "row_means_and_scales",
              "scale * (min(1.0, limits.norm / np.sqrt(total)) if total > 0 else 1.0)",
              "scale"),),
        (MOMENTS + FURTHER + "[row sums]",),
    ),
    Mutant(
        "sums of rows are rounded, not cut",
        "on a coarse grid rounding adds up to more than the bound",
        (Edit(ITEMS, "row_sums",
              "clipped(rows, p, rows.means[i]) * factor",
              "np.ceil(np.abs(clipped(rows, p, rows.means[i]) * factor))"),),
        (MOMENTS + "test_bounds_hold_in_integers_however_coarse_the_grid[5-row sums]",),
    ),
    Mutant(
        "counts by item have weight 1, not 1/sqrt(d)",
        "a person with many ratings counts many times",
        (Edit(ITEMS, "weighted_counts",
              "max(np.int64(radius / np.sqrt(stop - start)) - 2, 0)",
              "radius"),),
        (PREPARED + "test_bounds_hold_in_integers_however_coarse_the_grid[12-item counts]",),
    ),
    Mutant(
        "weights of sums by item are rounded to the nearest",
        "d weights of 1/sqrt(d) can come to more than one",
        (Edit(ITEMS, "weighted_sums",
              "max(np.int64(radius / np.sqrt(stop - start)) - 2, 0)",
              "np.int64(np.ceil(radius / np.sqrt(stop - start)))"),),
        (FIRST + "test_item_weights_hold_in_integers_however_fine_or_coarse_the_grid[4]",),
    ),
    Mutant(
        "the cap on ratings a user is forgotten",
        "the certificate names a cap that nothing keeps",
        (Edit("trusted/rows.py", "_choice",
              "most is None or not np.any(lengths > most)",
              "True"),),
        (FIRST + "test_a_forgotten_contribution_cap_would_be_noticed",),
    ),
    Mutant(
        "the number of ratings is counted without the cap",
        "one person's list moves it by more than is paid for",
        (Edit("trusted/statistics/rating_count.py", "RatingCount.adder",
              "np.minimum(np.diff(indptr[lo : hi + 1]), self.max_ratings).sum()",
              "np.diff(indptr[lo : hi + 1]).sum()"),),
        (MORE + "test_terms_are_all_that_moves_a_sum[rating count, rows not shortened]",),
    ),
    Mutant(
        "which ratings count depends on the place of a row among others",
        "when she leaves, other people's terms change too, and nobody has paid for those",
        (Edit(ROWS, "choose",
              "priorities(items[start:stop], values[start:stop], seed)",
              "priorities(items[start:stop], values[start:stop], seed + i)"),),
        (MORE + NOBODY_ELSE + "[1-product, one column]",),
    ),
    Mutant(
        "the mean of the user before her is taken off",
        "her ratings are in the next person's term too",
        (Edit(LOOPS, "_residual",
              "rows.means[i]",
              "rows.means[i - 1]"),),
        (MOMENTS + NOBODY_ELSE + "[covariance]",),
    ),
    Mutant(
        "fitted values of the user before her",
        "local state is no longer a function of one's own row",
        (Edit(LOOPS, "_residual",
              "move_row(fitted, span, change, target, picked, along, residual)",
              "move_row(fitted, (max(start - 1, 0), stop - start), change, target, picked, along,"
              " residual)"),),
        (FIRST + NOBODY_ELSE,),
    ),
    Mutant(
        "a user at the border of two threads is summed twice",
        "her term counts double, and so does what it tells",
        (Edit("engines/base.py", "run_on_threads",
              "edges[1:]",
              "[min(e + 1, edges[-1]) for e in edges[1:]]"),),
        (FIRST + ORDER + "[first covariance]",),
    ),
    Mutant(
        "sums in single precision instead of integers",
        "what one person adds depends on who came before, and no bound is exact",
        (Edit(BASE, "Statistic.integer_sum",
              "np.zeros(self.loop_shape, dtype=np.int64)",
              "np.zeros(self.loop_shape, dtype=np.float32)"),),
        (TAUGHT + "test_sums_are_integers_and_exact_on_the_finest_grid[first covariance]",),
    ),
    Mutant(
        "sums in double precision instead of integers",
        "as above, and much harder to see: 53 bits are enough for small tests",
        (Edit(BASE, "Statistic.integer_sum",
              "np.zeros(self.loop_shape, dtype=np.int64)",
              "np.zeros(self.loop_shape, dtype=np.float64)"),),
        (TAUGHT + "test_sums_are_integers_and_exact_on_the_finest_grid[first covariance]",),
    ),
    Mutant(
        "sqrt2 of replace is left out for covariances",
        "the paper's slip: mu is 41 % higher than stated",
        (Edit(BASE, "outer_product",
              "math.sqrt(2.0) * bound ** 2",
              "bound ** 2"),),
        (FIRST + FURTHER + "[first covariance, no centring]",),
    ),
    Mutant(
        "sqrt2 of replace is left out for blocks of several columns",
        "as above, for the block form",
        (Edit("trusted/statistics/product.py", "product_sensitivity",
              "term if columns == 1 else math.sqrt(2.0) * term",
              "term"),),
        (MORE + "test_the_product_bound_is_reached_with_several_columns",
         MORE + FURTHER + "[product, all columns]"),
    ),
    Mutant(
        "columns need not be orthonormal",
        "Algorithm 2 as printed: its first step has the sensitivity of a long vector",
        (Edit("trusted/statistics/residual.py", "check_orthonormal",
              "not np.allclose(block.T @ block, np.eye(columns), rtol=0.0, atol=1e-09 "
              "/ columns)",
              "False and (not np.allclose(block.T @ block, np.eye(columns), rtol=0.0, "
              "atol=1e-09 / columns))"),),
        (TAUGHT + "test_columns_that_are_not_orthonormal_are_refused[1.001]",
         TAUGHT + "test_columns_that_are_not_orthonormal_are_refused[50.0]"),
    ),
    Mutant(
        "replacing a row is taken to cost no more than removing it, for sums of rows",
        "half of the noise that is needed",
        (Edit("trusted/statistics/row_sums.py", "RowSums.sensitivity",
              "any_vector(self.bounds.norm)",
              "Sensitivity(self.bounds.norm, self.bounds.norm)"),),
        (MOMENTS + FURTHER + "[row sums]",),
    ),
    Mutant(
        "the sensitivity of item sums forgets that counts are released beside them",
        "mu is 41 % higher than stated",
        (Edit("trusted/statistics/item_sums.py", "ItemSums",
              "Sensitivity(add_remove=math.sqrt(2.0), replace=2.0)",
              "Sensitivity(add_remove=1.0, replace=math.sqrt(2.0))"),),
        (FIRST + FURTHER + "[item sums]",),
    ),
    Mutant(
        "variances beyond the cap are not cut off",
        "one person of wild taste shows in the spreads",
        (Edit("kernels/user_moments.py", "user_moments",
              "min(1.0, variance / cap)",
              "variance / cap"),),
        (MOMENTS + FURTHER + "[spreads of a narrow half]",),
    ),
    Mutant(
        "rows that are filled in are not clipped",
        "Algorithm 5 as printed: its noise assumes what it does not do",
        (Edit("kernels/filled.py", "descend",
              "total <= norm * norm",
              "total >= 0.0"),
         Edit(QUANTISER, "quantise",
              "squared <= most_squared",
              "squared >= 0.0")),
        (MORE + FURTHER + "[filled covariance after three steps, tight clip]",),
    ),
    Mutant(
        "gradients are clipped item by item, not as one vector",
        "someone with many ratings moves the sum by the root of their number",
        (Edit("kernels/factors.py", "_add_clipped",
              "np.sum(errors * errors)",
              "np.max(errors * errors)"),
         Edit("kernels/factors.py", "_add_clipped",
              "quantise(terms, factor, quanta.most_squared, integers)",
              "quantise(terms, factor, errors.size * quanta.most_squared, integers)")),
        (MORE + FURTHER + "[factor gradient]",),
    ),
    Mutant(
        "weights of items are used as they are, not made one vector of norm 1",
        "someone who rated many items counts in all of them with full weight",
        (Edit("kernels/normal_equations.py", "normal_equations",
              "quantise(hers, factor, quanta.most_squared, weights)",
              "for p in range(stop - start):\n"
              "    weights[p] = np.int64(min(1.0, item_weights[items[p]]) * "
              "np.sqrt(quanta.most_squared))"),),
        (EQUATIONS + FURTHER + "[equal weights]",),
    ),
    Mutant(
        "own factors are not clipped in normal equations",
        "someone with an unusual row has factors of any length",
        (Edit("kernels/normal_equations.py", "normal_equations",
              "quantise(solved, factor, quanta.most_squared, own)",
              "for k in range(rank):\n"
              "    own[k] = np.int64(np.rint(solved[k] * quanta.factor))"),),
        (EQUATIONS + FURTHER + "[even]",),
    ),
    Mutant(
        "G and b of the normal equations are taken for independent",
        "the bound of replace is that of two orthogonal terms, which they need not be",
        (Edit("trusted/statistics/normal_equations.py", "equations_sensitivity",
              "math.sqrt(2.0) * (1 + ratio ** 2 / 2) if ratio ** 2 <= 2 else 2 * ratio",
              "math.sqrt(2.0 + 2.0 * ratio ** 2)"),),
        (EQUATIONS + "test_the_stated_bound_is_the_maximum_of_the_proof",
         EQUATIONS + FURTHER + "[turned by light items]"),
    ),
    Mutant(
        "gradients at posterior means are clipped item by item, not as one vector",
        "someone with many ratings moves the sum by the root of their number",
        (Edit(POSTERIORS, "_add_terms",
              "clip_factor(length, 1.0)",
              "clip_factor(length / np.sqrt(items.size), 1.0)"),
         Edit(POSTERIORS, "_add_terms",
              "quantise(terms[0, :size], factor, quanta.most_squared, integers)",
              "most = items.size * quanta.most_squared\n"
              "quantise(terms[0, :size], factor, most, integers)")),
        (LATENT + FURTHER + "[gradient, usual]",),
    ),
    Mutant(
        "what all items of a user share in their equations is counted once, not for each of them",
        "someone with many ratings moves the sum by the root of their number",
        (Edit(POSTERIORS, "_add_equations",
              "most / count",
              "most"),
         Edit(POSTERIORS, "_add_equations",
              "most - count * _squared(one)",
              "most - _squared(one)"),
         Edit(POSTERIORS, "_add_equations",
              "count * length ** 2 + others ** 2",
              "length ** 2 + others ** 2")),
        (LATENT + FURTHER + "[equations, usual]", LATENT + FURTHER + "[full equations, usual]"),
    ),
    Mutant(
        "choice factors and posterior means are not clipped",
        "someone with an unusual row has factors of any length",
        (Edit(POSTERIORS, "factor_moments",
              "clip_factor(norm_of(vector), quanta.bound) / quanta.quantum",
              "1.0 / quanta.quantum"),
         Edit(POSTERIORS, "factor_moments",
              "quantise(vector, factor, quanta.most_squared, batch[waiting])",
              "for k in range(size):\n"
              "    batch[waiting, k] = np.int64(np.rint(vector[k] * factor))")),
        (LATENT + FURTHER + "[moments, usual]",),
    ),
    Mutant(
        "only posterior means are clipped, not the fit error beside them",
        "someone whose ratings fit badly moves the sum as far as she likes",
        (Edit(POSTERIORS, "factor_moments",
              "quantise(vector, factor, quanta.most_squared, batch[waiting])",
              "quantise(vector[:size - 1], factor, quanta.most_squared, batch[waiting])\n"
              "batch[waiting, size - 1] = np.int64(np.rint(vector[size - 1] * factor))"),
         Edit(POSTERIORS, "factor_moments",
              "norm_of(vector)",
              "norm_of(vector[:size - 1])")),
        (LATENT + FURTHER + "[moments, always clipped]",),
    ),
    Mutant(
        "the prior of a user is that of the user before her",
        "what she chose is in the next person's term too",
        (Edit(POSTERIORS, "_posterior",
              "_choice_factors(rows, i, model.choice)",
              "_choice_factors(rows, max(i - 1, 0), model.choice)"),
         Edit(SYSTEM, "_prior",
              "start, stop = (rows.indptr[i], rows.indptr[i + 1])",
              "start, stop = (rows.indptr[max(i - 1, 0)], rows.indptr[max(i - 1, 0) + 1])")),
        (LATENT + NOBODY_ELSE + "[1-moments]", LATENT + NOBODY_ELSE + "[1-gradient]",
         LATENT + NOBODY_ELSE + "[1-equations]"),
    ),
    Mutant(
        "someone without ratings is taken for an average person, and counted",
        "an empty row tells that somebody is there: leaving and saying nothing are no longer one",
        (Edit(POSTERIORS, "factor_moments",
              "count == 0",
              "False"),
         Edit(POSTERIORS, "factor_moments",
              "solve(rows, i, tables, room, rank)",
              "count > 0 and solve(rows, i, tables, room, rank)"),
         Edit(POSTERIORS, "_put_moment",
              "total / count",
              "total / max(count, 1)")),
        (LATENT + "test_empty_rows_add_nothing[moments, usual]",),
    ),
    Mutant(
        "someone who cannot solve for her factors is an error",
        "the error tells that such a row is there",
        (Edit(POSTERIORS, "factor_moments",
              "if not fine:\n    continue",
              "if not fine:\n    raise ValueError('no solution')"),),
        (LATENT + "test_who_cannot_solve_adds_nothing_and_others_all_the_same",),
    ),
    Mutant(
        "replacing a row is taken to cost no more than removing it, for expected gradients",
        "half of the noise that is needed",
        (Edit("trusted/statistics/expected_gradient.py", "ExpectedGradient.sensitivity",
              "any_vector(self.clip)",
              "Sensitivity(self.clip, self.clip)"),),
        (LATENT + "test_the_bound_of_expected_gradients_is_reached[1-0.0]",
         LATENT + FURTHER + "[gradient, always clipped]"),
    ),
    Mutant(
        "arrays of a latent model need not fit each other",
        "loops read what lies behind them in memory, which may be someone's ratings",
        (Edit("trusted/statistics/posterior.py", "LatentModel.arrays",
              "fits and np.all(self.noise > 0)",
              "True"),),
        (LATENT + "test_public_numbers_without_a_bound_are_refused",),
    ),
    Mutant(
        "losses on held-out ratings are not clipped",
        "a search among rules tells who is hard to please",
        (Edit("kernels/holdout.py", "add_losses",
              "clip_factor(norm_of(centred), quanta.bound) / quanta.quantum",
              "1.0 / quanta.quantum"),
         Edit(QUANTISER, "quantise",
              "squared <= most_squared",
              "squared >= 0.0")),
        (PREPARED + FURTHER + "[held-out losses of two rules]",),
    ),
    Mutant(
        "what is held out of a row depends on its place",
        "when she leaves, other people's ratings are held out",
        (Edit("kernels/holdout.py", "mark_held_out",
              "priorities(items[start:stop], values[start:stop], seed)",
              "priorities(items[start:stop], values[start:stop], seed + i)"),),
        (PREPARED + "test_what_is_held_out_depends_on_the_own_row_and_the_seed_alone",),
    ),
    Mutant(
        "a row on which arithmetic fails is an error",
        "the error tells that such a row is there",
        (Edit("kernels/solving.py", "_tall_solution",
              "return np.zeros(right.size)",
              "raise ValueError('no solution')"),),
        (MORE + "test_what_overflows_moves_nobody_beyond_the_bound[infinite gradient]",),
    ),
    Mutant(
        "numpy warns where one person's score overflows",
        "the warning tells that such a row is there",
        (Edit("trusted/statistics/holdout_losses.py", "HeldOutLosses._losses_of",
              "np.errstate(all='ignore')",
              "np.errstate(all='warn')"),),
        (TAUGHT + "test_scores_that_overflow_are_not_spoken_of",),
    ),
    Mutant(
        "sixteen times as many rows are added at a time as doubles can hold",
        "with 14,000 users the sum is off by some units, in which others have a part",
        (Edit("trusted/statistics/filled_covariance.py", "", "_BLOCK = 1024", "_BLOCK = 16384"),),
        (TAUGHT + "test_rows_filled_in_are_summed_exactly_however_many_there_are",),
    ),
)  # fmt: skip
