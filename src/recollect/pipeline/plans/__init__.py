"""Plans: what is audited with what, from a call or a plan file, and back to a file."""
