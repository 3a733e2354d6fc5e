"""Warnings at a value of the tree, or at a character inside it."""

from ripstop.definitions.problems import WARNING, Problem
from ripstop.definitions.yaml_tree import Value


def warning(value: Value, text: str, hint: str) -> Problem:
    return Problem(value.place, text, hint, WARNING)


def warning_inside(value: Value, offset: int, text: str, hint: str) -> Problem:
    place, source = value.inside(offset)
    return Problem(place, text, hint, WARNING, source)
