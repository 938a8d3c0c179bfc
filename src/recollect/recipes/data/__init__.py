"""Training data: tokenizers, vocabularies, and corpora laid out as training sequences."""
