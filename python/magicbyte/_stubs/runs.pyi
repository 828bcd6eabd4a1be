"""Runs of batches in files of any kind: JSON in, JSON out, with the shapes of `magicbyte.model`."""

from os import PathLike

def find_runs(path: str | PathLike[str], max_runs: int, wanted: str) -> str:
    """Finds the runs of whole batches in a file of any kind, at most `max_runs`: FoundRuns.

    A batch counts if its CRC holds and it is not inside of such a batch. The runs have the `wanted` marks of
    their batches, a list of BatchMarks, besides some others. Cost: one read of the file.

    Raises OSError if the file does not exist or is not a regular file.
    """
