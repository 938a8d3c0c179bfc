"""Fakes and contract checks for audits and signals, ours and yours."""
