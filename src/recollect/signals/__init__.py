"""Signals: answers in, one score per record out; higher is more evidence of training."""
