"""The lifetime book: what all fits of one population have spent together, and a limit."""

from tacit.book.book import Book
from tacit.book.reservation import Reservation

__all__ = ["Book", "Reservation"]
