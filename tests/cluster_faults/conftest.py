"""Lets the modules of this folder find each other when they are collected; `run.py` does the same for itself."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
