"""``python -m sf2el``: the command line."""

from sf2el.cli import main

if __name__ == "__main__":
    main(prog_name="sf2el")
