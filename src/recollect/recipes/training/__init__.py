"""One training: from a job through the loop to a folder that holds a model and its card."""
