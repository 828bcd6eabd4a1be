"""Schemas of keys and values: how bytes name them (`framing`), and where they are (`registry`)."""
