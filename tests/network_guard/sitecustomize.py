"""Installs the guard in every Python process that a test starts."""

import network_guard

network_guard.install()
