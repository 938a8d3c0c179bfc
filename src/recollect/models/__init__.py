"""Models that may be questioned, at a declared level of access, and the answers they give.

Importing this makes our own architectures known to the Auto classes of `transformers`.
"""

from recollect.models import architectures as architectures
