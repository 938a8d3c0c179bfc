"""Training with differential privacy, through Opacus: per record or per user."""
