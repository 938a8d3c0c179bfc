"""The roles that models, corpora and files have in the evidence; importing this costs nothing."""

from __future__ import annotations

from recollect import labels

TARGET = labels.ROLE_TARGET
"""The role of the model that is audited."""
REFERENCE = labels.ROLE_REFERENCE
"""The role of models that the target is compared with: they were not trained on the audited records."""
SHADOW = labels.ROLE_SHADOW
"""The role of models that were trained like the target on known halves of the data."""
AUDITED = labels.ROLE_AUDITED
"""The role of the corpus that is audited."""
CONTROLS = labels.ROLE_CONTROLS
"""The role of the corpus of held-out records, known not to be in the training set."""
PERTURBER = "perturber"
"""The role of a masked model that generates the neighbours; without one, a word is swapped for one as frequent."""
EMBEDDER = "embedder"
"""The role of a general masked model that is neither the target nor a reference; its embedding is a feature."""
CANARIES = "canaries"
"""The role of the manifest that `recollect plant` writes."""
