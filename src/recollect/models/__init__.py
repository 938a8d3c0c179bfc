"""Models that may be questioned, at a declared level of access, and the answers they give.

Nothing here loads torch before a model that needs it is loaded. Our own architectures become known to the Auto classes
of `transformers` by `import recollect.models.architectures`; whatever of ours loads a model imports it itself.
"""

from __future__ import annotations

from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.limited import limited
from recollect.models.loading.loader import load_model, natural_reference
from recollect.models.model import Frontier, Kind, Model, Question, Stepper

__all__ = [
    "Access",
    "Answers",
    "Frontier",
    "Kind",
    "Model",
    "Question",
    "Stepper",
    "limited",
    "load_model",
    "natural_reference",
]
