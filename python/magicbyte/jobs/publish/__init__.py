"""Publishing output: all of it appears under its name, or none of it."""
