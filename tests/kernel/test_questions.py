"""What a person's words mean as the answer to a question."""

from typing import Any

import pytest
from hypothesis import example
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson, Field, PersonAnswered
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered
from ripstop.kernel.questions import MAX_TEXT, read_answer

REVIEW = AskPerson(
    question="Is it good?",
    choices={"pass": "Looks good", "edit": "I edited it", "feedback": ""},
    other="feedback",
    empty="pass",
    edit="edit",
)
STRICT = AskPerson(question="Which?", choices={"a": "b", "b": "the second"})
FREE = AskPerson(question="Well?")
FORM = AskPerson(
    question="How?",
    choices={"go": "", "later": ""},
    empty="later",
    fields={
        "note": Field(),
        "money": Field(type="number"),
        "count": Field(type="integer", required=True),
        "sure": Field(type="boolean"),
        "size": Field(type="one_of", allowed=("s", "m")),
        "toppings": Field(type="some_of", allowed=("salt", "jam")),
    },
)


# Words


@pytest.mark.req("S3-30", "S3-31")
@pytest.mark.parametrize(
    ("words", "choice"),
    [
        ("pass", "pass"),
        (" pass\n", "pass"),
        ("PASS", "pass"),
        ("Looks good", "pass"),
        ("looks Good ", "pass"),
        ("Feedback", "feedback"),
        ("", "pass"),
    ],
)
def test_words_are_a_choice_if_all_of_them_are_it_or_its_label(words: str, choice: str) -> None:
    assert read_answer(REVIEW, words) == PersonAnswered(choice=choice)


@pytest.mark.req("S3-32")
@pytest.mark.parametrize(
    "words",
    ["pass it on to bob", "pass the tests first", "Pass.", "looks  good", "The word pass.\n\n  Indented.  ", "1"],
)
def test_any_other_text_is_the_other_choice_word_for_word(words: str) -> None:
    assert read_answer(REVIEW, words) == PersonAnswered(choice="feedback", text=words)


def test_a_choice_wins_over_a_label_of_the_same_words() -> None:
    assert read_answer(STRICT, "b").choice == "b"


@pytest.mark.parametrize(
    ("words", "choice"),
    [("go", "go"), ("GO", "GO"), ("Go", "go"), ("STOP", "halt"), ("stop", "go"), ("Straße", "way")],
)
def test_the_exact_words_go_before_those_of_another_case(words: str, choice: str) -> None:
    ask = AskPerson(question="?", choices={"go": "stop", "GO": "", "halt": "STOP", "way": "STRASSE"})
    assert read_answer(ask, words).choice == choice


@pytest.mark.parametrize("words", ["c", "a b", "", "   ", "x" * 5000])
def test_without_an_other_choice_other_text_is_refused_and_choices_are_named(words: str) -> None:
    with pytest.raises(UsageError, match=r"is not an answer to this question; choose from a, b\.$") as refused:
        read_answer(STRICT, words)
    assert len(str(refused.value)) < 300


def test_a_refusal_says_that_other_text_is_possible() -> None:
    with pytest.raises(UsageError, match=r"pass, edit, feedback, or any other text \(feedback\)"):
        read_answer(REVIEW, choice="paas")


def test_an_explicit_choice_keeps_the_words_beside_it() -> None:
    assert read_answer(STRICT, " a ", choice="b") == PersonAnswered(choice="b", text=" a ")


def test_a_question_without_choices_takes_words_only() -> None:
    assert read_answer(FREE, "yes, do", by="ann") == PersonAnswered(text="yes, do", by="ann")
    with pytest.raises(UsageError, match="has no choices, so 'yes' cannot be one"):
        read_answer(FREE, choice="yes")
    with pytest.raises(UsageError, match="empty answer"):
        read_answer(FREE, " \n")


@pytest.mark.parametrize(
    "too_long", [{"words": "x" * (MAX_TEXT + 1)}, {"document": "x" * (MAX_TEXT + 1), "choice": "edit"}]
)
def test_an_answer_has_bounds(too_long: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="at most 1,000,000 characters"):
        read_answer(REVIEW, **too_long)


# Documents


@pytest.mark.req("S3-33")
def test_the_edit_choice_brings_the_document_and_needs_it() -> None:
    assert read_answer(REVIEW, choice="edit", document="# New") == PersonAnswered(choice="edit", document="# New")
    assert read_answer(REVIEW, choice="edit", document="").document == ""
    with pytest.raises(UsageError, match="'edit' needs the edited document"):
        read_answer(REVIEW, "edit")


@pytest.mark.parametrize("choice", ["pass", "feedback"])
def test_no_other_choice_brings_a_document(choice: str) -> None:
    with pytest.raises(UsageError, match="choose 'edit' with it"):
        read_answer(REVIEW, choice=choice, document="# New")
    with pytest.raises(UsageError, match="cannot come with this answer"):
        read_answer(FREE, "words", document="# New")


# Fields


@pytest.mark.req("S3-38", "S3-39", "S3-40")
def test_fields_become_values_of_their_types() -> None:
    said = {"note": "x", "money": "1.5", "count": "3", "sure": "Yes", "size": "m", "toppings": "jam, salt,jam"}
    meant = {"note": "x", "money": 1.5, "count": 3, "sure": True, "size": "m", "toppings": ["jam", "salt"]}
    assert read_answer(FORM, choice="go", fields=said).fields == meant
    assert read_answer(FORM, choice="go", fields=meant).fields == meant


def test_a_field_that_is_left_empty_is_not_given() -> None:
    said = {"note": "", "money": "", "count": 1, "sure": None, "size": "", "toppings": ""}
    assert read_answer(FORM, choice="go", fields=said).fields == {"count": 1}


@pytest.mark.parametrize("fields", [None, {}, {"note": "x"}, {"count": ""}])
def test_a_required_field_is_missed_unless_the_answer_is_the_empty_one(fields: dict[str, Any] | None) -> None:
    with pytest.raises(UsageError, match="'count' is missing"):
        read_answer(FORM, choice="go", fields=fields)
    assert read_answer(FORM, choice="later", fields=fields).choice == "later"


def test_an_answer_may_be_nothing_but_fields() -> None:
    ask = AskPerson(question="How many?", fields={"count": Field(type="integer")})
    assert read_answer(ask, fields={"count": "3"}) == PersonAnswered(fields={"count": 3})
    with pytest.raises(UsageError, match="empty answer"):
        read_answer(ask, fields={"count": ""})


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no field 'speed'; there are: note, money"):
        read_answer(FORM, choice="go", fields={"count": 1, "speed": 2})
    with pytest.raises(UsageError, match="it has none"):
        read_answer(FREE, "x", fields={"speed": 2})


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


WRONG: dict[str, list[Any]] = {
    "count": ["3.5", 3.5, "three", True, 10**5000, "9" * 400, 2**53 + 1, [3], {}],
    "money": ["nan", "inf", 1e300, 10**400, True, object(), [1.0], "1,5"],
    "sure": ["maybe", 2, [], deep(5000)],
    "size": ["l", "S", 1, 10**5000, deep(5000), ["s"]],
    "toppings": ["salt,sugar", ["salt", 1], 7, {"salt": 1}, [["salt"]]],
    "note": [7, ["x"], "x" * (MAX_TEXT + 1)],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in WRONG.items() for value in values],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_not_of_its_fields_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name) as refused:
        read_answer(FORM, choice="go", fields={"count": 1, name: value})
    assert len(str(refused.value)) < 300


# Whatever is said

words = st.text(st.characters(codec=None), max_size=8) | st.sampled_from(["", "a", "b", "pass", "edit", "go", "\ud800"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3) | st.tuples(inner),
    max_leaves=6,
)
names = st.sampled_from(["a", "b", "count"])
fields = st.builds(
    Field,
    type=st.sampled_from(["text", "number", "integer", "boolean", "one_of", "some_of"]),
    allowed=st.lists(st.sampled_from(["s", "m", ""]), max_size=2).map(tuple),
    required=st.booleans(),
)
choice_names = st.sampled_from(["", "a", "pass", "edit"])
questions = st.sampled_from([REVIEW, STRICT, FREE, FORM]) | st.builds(
    AskPerson,
    question=st.just("?"),
    choices=st.dictionaries(st.sampled_from(["a", "pass", "edit"]), st.sampled_from(["", "a", "b"]), max_size=3),
    other=choice_names,
    empty=choice_names,
    edit=choice_names,
    fields=st.dictionaries(names, fields, max_size=3),
)


@for_all(
    questions,
    words,
    words,
    st.none() | words,
    st.none() | st.dictionaries(names | words, anything, max_size=3),
    words,
)
@example(FREE, "x", "", None, None, "\ud800")
def test_words_become_an_answer_that_can_be_recorded_or_are_refused(
    ask: AskPerson, text: str, choice: str, document: str | None, given: dict[str, Any] | None, by: str
) -> None:
    try:
        answer = read_answer(ask, text, choice=choice, document=document, fields=given, by=by)
    except UsageError as error:
        str(error).encode(errors="surrogatepass")
        assert len(str(error)) < 500
        return
    assert answer.choice in ask.choices or not (ask.choices or answer.choice)
    assert set(answer.fields) <= set(ask.fields)
    event = Answered(to=1, answer=answer)
    assert Codec().load(Codec().dump(event)) == event


def test_fields_without_a_word_are_not_an_empty_answer() -> None:
    ask = AskPerson(
        question="?", choices={"accept": "", "decline": ""}, empty="decline", fields={"n": Field(type="integer")}
    )
    assert read_answer(ask).choice == read_answer(ask, fields={"n": ""}).choice == "decline"
    assert read_answer(ask, "accept", fields={"n": "3"}).fields == {"n": 3}
    with pytest.raises(UsageError, match="choose from accept, decline"):
        read_answer(ask, fields={"n": "3"})
