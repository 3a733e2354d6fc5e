"""`ripstop`, and `python -m ripstop`."""

from ripstop.faces.cli.signals import take_signals


def main() -> None:
    take_signals()  # before the imports, which take a moment
    from ripstop.faces.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
