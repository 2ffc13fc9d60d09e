"""The trust zone: the only code that sees people's rows on the way to a release.

rows.py bounds what one person can contribute; statistics.py forms bounded sums and states
their sensitivity; mechanism.py is the only place that opens a bounded sum, and only to add
noise; sampler.py is the only place that draws noise; journal.py makes releases durable.
"""
