"""Leakage: which sequences of which user come out of a model, and whether anybody else could have written them."""
