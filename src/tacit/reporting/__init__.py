"""Reports, figures and tables: everything that people look at."""
