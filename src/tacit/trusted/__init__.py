"""The trust zone: the only code that sees people's rows on the way to a release.

selection.py keeps some of everyone's ratings, and rows.py bounds what one person can contribute;
local.py keeps what users made of the releases; quantise.py says how many units a bound is worth;
statistic.py is what a statistic and a bounded sum are; statistics/ has one file for each, with the
proof of its sensitivity (at length in docs/privacy/proofs.md); sealing.py carries partial sums
between processes; mechanism.py is the only place that opens a
bounded sum, and only to add noise; sampler.py (with exact_normal.py and normal_tail.py) is the
only place that draws noise; journal.py makes releases durable.
"""
