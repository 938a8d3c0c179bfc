"""Leakage: which sequences of which user a model reproduces, and whether training on that user explains it."""
