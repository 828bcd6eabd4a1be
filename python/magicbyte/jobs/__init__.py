"""Jobs over whole directories, which run in threads or in Spark tasks.

    list -> survey -> plan -> decode

`partitions` lists, `plan` surveys and plans, `reading` is the loop around the decoder, and `engines` runs
the tasks. Each job has its own module, such as `ingest`, `verify` or `stats`.
"""
