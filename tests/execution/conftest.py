"""Lets worker processes import the work that tests give them: they inherit this path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
