"""Compatibility of a schema with the versions of its subject, as a registry decides it: see `check.py`."""
