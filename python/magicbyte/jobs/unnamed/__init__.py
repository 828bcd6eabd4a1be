"""Batches in files that have lost their names: `magicbyte find`."""
