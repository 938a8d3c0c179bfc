"""Ordered maps over local processes; knows neither models nor audits."""
