"""What a user says of himself: tools get it, but never in place of who he is, and never before it is agreed to."""

from pathlib import Path
from typing import Any

import pytest

from ripstop.kernel.effects import CallTool, Failed, ToolReturned
from ripstop.kernel.events import Answered, Doubted, Heard
from ripstop.kernel.style import arguments_for
from ripstop.styles.conversation.actions import known_of, variables_of
from ripstop.styles.conversation.definition import BotTool, Endpoint
from ripstop.styles.conversation.events import ProfileUpdated
from ripstop.styles.conversation.style import ConversationStyle
from ripstop.testing import given
from tests.styles.conversation.bots import bot_of
from tests.styles.conversation.chat_story import TOOLS, Story, action, bot

UPSERT = BotTool(
    "upsert", endpoint=Endpoint("https://api.shop.example/me", "POST", body="#phone#"), purpose="update_profile"
)


def session(*fixed: str, tools: tuple[BotTool, ...] = TOOLS, **variables: Any) -> Story:
    story = Story(bot(fixed_variables=fixed, tools=tools))
    story.given = given(ConversationStyle(), story.bot, arguments={"session": "s1", "variables": variables})
    return story.ready().hear("I am another")


def noting(story: Story, **said: object) -> Story:
    return story.decides("processing", None, action("SYSTEM", "update_profile", **said))


def sent(story: Story) -> dict[str, str]:
    """The variables of the call that is under way."""
    opened = story.given.run.open[story.given.opened(CallTool)]  # type: ignore[union-attr]
    arguments = arguments_for(story.given.style, opened.state, opened.command)  # type: ignore[arg-type]
    return dict(arguments["variables"])


@pytest.mark.parametrize("name", ["customer_id", "customerId", "ID", "userid", "contact.id"])
def test_an_id_that_the_session_began_with_is_not_changed_by_what_the_user_says(name: str) -> None:
    variables: dict[str, Any] = {name: "7", "phone": "1"}
    story = noting(session(**variables), **{name: "42", name.upper(): "43", "phone": "2"})
    story.decides("processing", None, action("TOOL", "refund", id="A1"))
    assert (sent(story)[name], sent(story)["phone"]) == ("7", "2")
    assert "43" not in sent(story).values() and f"{name}: 7" in story.answer(ToolReturned(value=1)).prompt()
    assert known_of(story.state)[name] == "7"


def test_other_variables_are_fixed_if_the_bot_says_so() -> None:
    said = {"phone": "2", "Email": "b@x"}
    open_one = noting(session(phone="1", email="a@x"), **said)
    assert (variables_of(open_one.state)["phone"], variables_of(open_one.state)["Email"]) == ("2", "b@x")
    fixed = noting(session("phone", "EMAIL", phone="1", email="a@x"), **said)
    assert (variables_of(fixed.state)["phone"], variables_of(fixed.state)["email"]) == ("1", "a@x")
    assert "Email" not in variables_of(fixed.state)


def test_what_the_session_did_not_begin_with_is_what_the_user_says() -> None:
    story = noting(session("phone"), order_id="42", phone="2")
    assert (variables_of(story.state)["order_id"], variables_of(story.state)["phone"]) == ("42", "2")


def test_fixed_variables_are_read_at_the_top_and_below_options(tmp_path: Path) -> None:
    for config in ({"fixed_variables": "phone, email"}, {"options": {"fixed_variables": ["phone", "email"]}}):
        assert bot_of(tmp_path, {"name": "Shop", "sop": "Help.", **config}).fixed_variables == ("phone", "email")


def test_the_endpoint_of_a_profile_gets_the_news_and_others_only_what_it_has_taken() -> None:
    refused = noting(session(phone="1", user_id="7", tools=(*TOOLS, UPSERT)), phone="2", user_id="8")
    assert (sent(refused)["phone"], sent(refused)["user_id"]) == ("2", "7")
    refused.answer(Failed(reason="422: not a number"))
    assert variables_of(refused.state)["phone"] == "1" and "phone: 1" in refused.prompt()
    assert not [one for one in refused.given.records if isinstance(one.event, ProfileUpdated)]
    taken = noting(session(phone="1", tools=(*TOOLS, UPSERT)), phone="2").answer(ToolReturned(value="ok"))
    assert variables_of(taken.state)["phone"] == "2" and "phone: 2" in taken.prompt()


def test_a_profile_in_doubt_counts_once_it_is_known_that_it_was_taken() -> None:
    for answer, phone in ((ToolReturned(value="ok"), "2"), (Failed(reason="no"), "1")):
        story = noting(session(phone="1", tools=(*TOOLS, UPSERT)), phone="2")
        number = story.given.opened(CallTool)
        story.tell(Doubted(to=number, evidence="It answered 500."))
        assert variables_of(story.state)["phone"] == "1"
        story.tell(Answered(to=number, answer=answer))
        assert variables_of(story.state)["phone"] == phone


def test_a_profile_that_is_taken_after_a_new_message_or_with_a_hand_over_counts() -> None:
    story = noting(session(phone="1", tools=(*TOOLS, UPSERT)), phone="2")
    number = story.given.opened(CallTool)
    story.tell(Heard(text="Are you there?")).tell(Answered(to=number, answer=ToolReturned(value="ok")))
    assert variables_of(story.state)["phone"] == "2"
    handed = session(phone="1", tools=(*TOOLS, UPSERT))
    handed.decides("transferred", "A colleague comes.", action("SYSTEM", "update_profile", phone="2"))
    assert variables_of(handed.state)["phone"] == "1"
    assert variables_of(handed.answer(ToolReturned(value="ok")).state)["phone"] == "2"
