"""Check forecasts of `tacit plan` against real fits of synthetic families; prints a table.

python benchmarks/forecast.py
"""

from tacit.accounting.budget import PrivacyBudget
from tacit.research.experiments.simulated import simulate
from tacit.research.theory import Case, Tastes

STARS = (0.5, 5.0)
EPSILONS = (0.1, 1.0, 5.0)
CASES = (
    ("few", 1_000, 200, 40),
    ("popular", 10_000, 200, 60),
    ("sparse", 10_000, 200, 8),
    ("wide", 10_000, 1_000, 40),
    ("missing-not-at-random", 10_000, 200, 50),
    ("popular", 100_000, 200, 60),
    ("sparse", 100_000, 200, 8),
    ("wide", 100_000, 1_000, 20),
)


def main() -> None:
    """Print measured and forecast gains over one's own mean, in percent."""
    print("| family | users | items | ratings a user | epsilon | measured | forecast | off by |")
    print("|---|---|---|---|---|---|---|---|")
    for family, users, items, per_user in CASES:
        for epsilon in EPSILONS:
            case = Case(
                users=users,
                items=items,
                per_user=per_user,
                rating_range=STARS,
                budget=PrivacyBudget(epsilon),
                tastes=Tastes.usual(STARS),
            )
            found = simulate(case, family, seed=3)
            gain, formula = 100 * found.gain, 100 * found.forecast_gain
            print(
                f"| {family} | {users:,} | {items:,} | {per_user} | {epsilon:g} "
                f"| {gain:.1f} % | {formula:.1f} % | {formula - gain:+.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
