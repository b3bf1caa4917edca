"""``python -m mercat``: the command line, for when the command is not on the path."""

from .cli import main

if __name__ == "__main__":
    main()
