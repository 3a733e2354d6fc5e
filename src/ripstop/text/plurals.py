"""How many of something, in words."""


def count(number: int, thing: str) -> str:
    """`1 call`, `2 calls`. Only for things whose plural ends in an s."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
