"""From a plan to results: trains what is missing, scores in bulk, runs the audits."""
