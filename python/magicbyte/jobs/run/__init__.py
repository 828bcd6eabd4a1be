"""Running a job: plans, tasks on an engine, decoding, and the account of bytes and records."""
