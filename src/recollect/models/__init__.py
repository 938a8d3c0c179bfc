"""Models that may be questioned, at a declared level of access, and the answers they give.

Importing this makes our own architectures known to the Auto classes of `transformers`, and so loads torch.
"""

from __future__ import annotations

from recollect.models import architectures
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.limited import limited
from recollect.models.loading import load_model, natural_reference
from recollect.models.model import Frontier, Kind, Model, Question, Stepper

__all__ = [
    "Access",
    "Answers",
    "Frontier",
    "Kind",
    "Model",
    "Question",
    "Stepper",
    "architectures",
    "limited",
    "load_model",
    "natural_reference",
]
