"""What is published, and what a person does with it on her own machine."""

from tacit.models.file import load
from tacit.models.model import Model, Recommendation

__all__ = ["Model", "Recommendation", "load"]
