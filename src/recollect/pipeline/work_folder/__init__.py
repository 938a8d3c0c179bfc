"""The upkeep of a work folder: what is in it, which runs rest on it, cleaning, erasure and verification."""
