"""Ratings on their way in: tables, ids, the catalogue, and everyone's rows."""
