"""The four kinds of Hugging Face models that score records on this machine, and what they compute with."""
