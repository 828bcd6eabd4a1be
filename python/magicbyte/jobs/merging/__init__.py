"""Merging the copies of partitions."""
