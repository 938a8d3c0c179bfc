"""Statistics that hold what they claim. NumPy and SciPy only."""
