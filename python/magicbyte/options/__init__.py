"""The options of the jobs: each is declared once, as a field of a class.

The keywords of the functions in `magicbyte.commands` and the flags of the command line are made from these
classes. The package imports no job, so that `--help` needs no optional package.
"""
