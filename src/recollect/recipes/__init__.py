"""How a cohort becomes a model: architectures, tokenizers, one training loop, fleets."""
