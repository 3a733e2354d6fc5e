"""Sums and differences of what calls cost."""

from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.kernel.effects import Usage

counts, amounts = st.integers(0, 10**9), st.integers(0, 1000).map(float)
costs = st.builds(Usage, counts, counts, amounts, counts, counts, amounts)
anything = st.builds(
    Usage,
    *(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6), st.integers(-1000, 1000).map(float)),
    *(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6), st.integers(-1000, 1000).map(float)),
)


@for_all(costs, costs)
def test_what_was_spent_since_is_what_was_added(before: Usage, more: Usage) -> None:
    assert before.plus(more).minus(before) == more


@for_all(costs, anything)
def test_a_sum_is_never_less_than_what_was_spent(before: Usage, more: Usage) -> None:
    after = before.plus(more)
    for name in Usage.__struct_fields__:
        assert getattr(after, name) == getattr(before, name) + max(0, getattr(more, name))


@for_all(anything, anything)
def test_a_difference_is_never_negative(one: Usage, other: Usage) -> None:
    assert all(getattr(one.minus(other), name) >= 0 for name in Usage.__struct_fields__)


def test_money_that_was_not_reported_counts_without_tokens() -> None:
    assert Usage(money=1.0).plus(Usage(unreported_money=0.5)).counted_money == 1.5
