"""The lifetime book: the budget of one population over all fits, and a limit on it."""

from tacit.book.book import Book
from tacit.book.reservation import Reservation

__all__ = ["Book", "Reservation"]
