"""Reading ratings: tables, ids, the catalogue, and rows by user."""
