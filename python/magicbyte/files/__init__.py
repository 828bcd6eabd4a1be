"""Single files of a log as they are, with their damage."""
