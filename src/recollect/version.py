"""The version, in the one place where everything can read it."""

__version__ = "0.2.0"
