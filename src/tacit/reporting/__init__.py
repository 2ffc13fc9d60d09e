"""Everything that people look at: the HTML report, figures and tables."""
