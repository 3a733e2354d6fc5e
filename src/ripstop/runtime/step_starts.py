"""Where the steps of a run begin: a fact, and all that was decided on it."""

from array import array
from bisect import bisect_right


class StepStarts:
    """The numbers of the facts of a run, four bytes each."""

    def __init__(self) -> None:
        self._numbers = array("I")

    def add(self, number: int) -> None:
        self._numbers.append(number)

    def around(self, number: int, length: int) -> tuple[int, int]:
        """The first and the last record of the step that a record is in, of a run with so many records."""
        at = bisect_right(self._numbers, number)
        first = self._numbers[at - 1] if at else 1
        return first, self._numbers[at] - 1 if at < len(self._numbers) else length
