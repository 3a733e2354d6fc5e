"""Who the person at this terminal is."""

import getpass


def user_name() -> str:
    """The name of the user; empty if the system does not know it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
