"""Sums are exact products of integers, so the threads of BLAS cannot change them.

The other tests give BLAS one thread.
"""

import numpy as np
from tests.conftest import ratings_for
from threadpoolctl import threadpool_info, threadpool_limits

import tacit
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import ResidualCovariance

ITEMS = 200


def test_sums_do_not_depend_on_the_threads_of_blas() -> None:
    ratings = ratings_for(0, users=1100, items=ITEMS, per_user=20)  # more than one block of users
    statistic = ResidualCovariance(RowBounds(None, np.full(ITEMS, 3.0), True, 3.0), (), 3.0)
    unit = statistic.max_entry * 2.0 ** -min(40, statistic.term_bits)
    found = []
    for threads in (1, 3):
        engine = tacit.ThreadEngine(1)
        engine.take(ratings)
        with threadpool_limits(threads, user_api="blas"):
            assert {
                one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
            } == {threads}
            found.append(engine.sum(statistic, unit)._exact_sum)
    assert np.array_equal(*found)
