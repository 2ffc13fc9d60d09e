"""The published model, and what a person computes from it on her own device."""

from tacit.models.file import load
from tacit.models.model import Model
from tacit.models.results import Reason, Recommendation, SimilarItem

__all__ = ["Model", "Reason", "Recommendation", "SimilarItem", "load"]
