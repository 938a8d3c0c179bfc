"""From a plan to results: trains what is missing, asks in bulk, runs the audits."""
