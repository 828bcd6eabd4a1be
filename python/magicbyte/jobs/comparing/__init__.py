"""Comparing two logs, record by record, by digests of ranges of offsets."""
