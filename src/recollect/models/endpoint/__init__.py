"""Models behind an HTTP server: probed, scored within a budget, and never believed on doubt."""
