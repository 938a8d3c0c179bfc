"""The answer store: scores per token of a model, in shards on disk, and the scoring that fills it."""
