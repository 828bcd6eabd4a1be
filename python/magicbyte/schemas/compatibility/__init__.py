"""Whether a schema may follow others in a subject, as a registry decides it: `check.py`, and the formats."""
