"""From the name of a model, or a model in memory, to one that scores records: files, weights, adapters, devices."""
