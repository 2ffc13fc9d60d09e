"""The trust zone: the only code that sees people's rows on the way to a release.

selection.py keeps some of everyone's ratings, and rows.py bounds what one person can contribute;
local.py keeps what users made of the releases; statistics.py, counts.py, filled.py, gradients.py,
normal_equations.py, norms.py, spreads.py and holdout.py form bounded sums and prove their
sensitivity (at length in docs/privacy/proofs.md); mechanism.py is the only place that opens a
bounded sum, and only to add noise; sampler.py (with exact_normal.py and normal_tail.py) is the
only place that draws noise; journal.py makes releases durable.
"""
