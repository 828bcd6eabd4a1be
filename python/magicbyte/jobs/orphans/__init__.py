"""Schemas that a log names and a registry does not have: counting names, samples, and what is certain."""
