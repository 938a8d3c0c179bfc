"""Views of results: HTML, Markdown, figures. Reads result JSON only."""
