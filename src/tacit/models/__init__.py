"""What is published, and what a person does with it on her own machine."""

from tacit.models.file import load
from tacit.models.model import Model
from tacit.models.results import Reason, Recommendation, SimilarItem

__all__ = ["Model", "Reason", "Recommendation", "SimilarItem", "load"]
