"""The extension package is installed by its tests, and not collected as tests of ours."""

collect_ignore = ["recollect-fluency"]
