"""Records as tokens: tokenizers, chat templates, spelling of tokens, and windows of long texts."""
