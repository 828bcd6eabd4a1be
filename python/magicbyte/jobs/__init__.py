"""The jobs over whole directories: the same steps in threads or in Spark's tasks.

    partitions -> survey -> fold -> decode

`model` has the facts that the steps hand on, `plan` the survey and the fold, `reading` the one loop
round the decoder; `ingest`, `verify` and `stats` are the jobs, `engines` says where tasks run.
"""
