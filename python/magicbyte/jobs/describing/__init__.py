"""Descriptions of running clusters: topics, settings, and groups with their positions."""
