"""Time that passes when the test says so."""

MICROS = 1_000_000


class FakeClock:
    """Stands still until it is moved. Call it to read it, in microseconds since 1970-01-01 UTC."""

    def __init__(self, seconds: float = 1_800_000_000.0) -> None:
        self._now = round(seconds * MICROS)

    def __call__(self) -> int:
        return self._now

    def pass_by(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"Time does not run backwards ({seconds} s).")
        self._now += round(seconds * MICROS)
