"""Models that may be questioned, at a declared level of access, and the answers they give."""
