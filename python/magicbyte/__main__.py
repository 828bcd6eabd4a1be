"""`python -m magicbyte`: the command line."""

import sys

from magicbyte.cli import main

if __name__ == "__main__":
    sys.exit(main())
