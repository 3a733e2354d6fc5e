"""`python -m ripstop`"""

from ripstop.faces.cli.main import main

if __name__ == "__main__":
    main()
