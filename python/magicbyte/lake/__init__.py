"""Transactional tables, Delta or Iceberg, that equal a log.

    open the table -> plan from its offsets -> decode and write files (tasks) -> commit (driver)

`table` says what a job needs of a format, `delta` and `iceberg` implement it, `growth` lets columns grow with
schemas, `job_files` keeps the files of one job apart until they are committed, `write` is the task, `ingest`
the job. `read` opens any kind of table to compare it with the log.

`state` has the lineage of the log that a table continues, `divergence` finds out whether the log has become
another one, by the digests of `differences`, and `repair` and `rewrite` replace what is not in the log.
"""
