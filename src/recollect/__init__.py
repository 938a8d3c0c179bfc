"""Recollect: what does a trained model remember of the data it was trained on?"""

from __future__ import annotations

__version__ = "0.1.0"
