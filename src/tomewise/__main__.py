"""`python -m tomewise` is the command `tome`."""

from tomewise.terminal.program import main

if __name__ == "__main__":
    main()
