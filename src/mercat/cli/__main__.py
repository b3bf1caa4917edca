"""`python -m mercat.cli`, the same as `mercat`."""

from . import main

main()
