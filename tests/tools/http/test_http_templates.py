"""What is put into a URL, a header or a body stays in its place, whatever it is."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.engine.performers import Refused
from ripstop.security.endpoints import parse_endpoint
from ripstop.tools.http.templates import TemplateValues, fill_header, fill_json, fill_text, fill_url

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TRICKY = st.sampled_from(
    ["..", ".", "/", "?x=1", "#f", "@evil", "\\", "%2e%2e", "{b}", "#b#", "${KEY}", "\r\nX: 1", " "]
)


def known(**values: Any) -> TemplateValues:
    return TemplateValues(values, {"session": "s-1"})


@given(st.one_of(TEXT, TRICKY))
def test_a_value_in_a_query_comes_back_and_changes_nothing_else(value: str) -> None:
    url = parse_endpoint(fill_url("https://api.example:8443/a/b?x={v}&y=1", known(v=value)))
    assert (url.origin, urlsplit(url.target).path) == ("https://api.example:8443", "/a/b")
    assert parse_qsl(urlsplit(url.target).query, keep_blank_values=True) == [("x", value), ("y", "1")]


@given(st.one_of(TEXT, TRICKY))
def test_a_value_in_a_path_is_one_segment_or_refused(value: str) -> None:
    try:
        url = parse_endpoint(fill_url("https://api.example/users/{v}/orders", known(v=value)))
    except Refused as refused:
        assert value in ("", ".", ".."), refused
        assert refused.fault == "agent"
        return
    assert url.origin == "https://api.example"
    users, segment, orders = url.target.split("/")[1:]
    assert (users, unquote(segment), orders) == ("users", value, "orders")


@given(ANYTHING)
def test_a_string_that_is_only_a_placeholder_becomes_the_value_itself(value: Any) -> None:
    template = {"a": "{v}", "list": ["{v}", 7], "kept": {"#v#": None}}
    filled = fill_json(template, known(v=value))
    assert filled == {"a": value, "list": [value, 7], "kept": {"#v#": None}}
    assert type(filled["a"]) is type(value)


@given(TEXT, TEXT)
def test_what_is_put_in_is_never_read_as_a_template_again(first: str, second: str) -> None:
    values = known(a=f"{first}{{b}}#session#${{KEY}}", b=second)
    assert fill_text("<{a}>", values) == f"<{first}{{b}}#session#${{KEY}}>"
    assert fill_header("<{a}>", values, {"KEY": "secret"}) == f"<{first}{{b}}#session#${{KEY}}>"
    assert fill_json("{a}", values) == f"{first}{{b}}#session#${{KEY}}"


@given(st.text())
def test_any_text_is_a_template(text: str) -> None:
    fill_json({"a": [text]}, known())
    try:
        fill_url(text, known(a="1"))
    except Refused as refused:
        assert refused.fault in ("agent", "definition")


def test_a_placeholder_without_a_value_is_null_alone_and_empty_inside_a_text() -> None:
    assert fill_json({"a": "{no}", "b": "#no#", "c": "[{no}|#no#]"}, known()) == {"a": None, "b": None, "c": "[|]"}
    assert fill_url("https://a.example/x?q={no}&r=#no#", known()) == "https://a.example/x?q=&r="


def test_what_the_agent_gave_comes_before_what_is_known_and_hashes_name_only_what_is_known() -> None:
    values = TemplateValues({"name": "given", "gone": None}, {"name": "known", "gone": "known too"})
    assert fill_text("{name} #name# {gone}", values) == "given known known too"
    assert fill_text("#other#", TemplateValues({"other": "given"}, {})) == ""


def test_values_inside_a_longer_text_are_written_as_json() -> None:
    values = known(n=4, f=1.5, t=True, o={"a": [1]}, x="退货")
    assert fill_text("{n} {f} {t} {o} {x}", values) == '4 1.5 true {"a":[1]} 退货'


@pytest.mark.parametrize(
    "url",
    [
        "https://{host}/x",
        "https://api.example:{port}/x",
        "https://api{x}.example/x",
        "https://{user}@api.example/x",
        "{scheme}://api.example/x",
        "{url}",
        "https://api.example#x#/y",
        "https://#x#/y",
        "https://api.example/x?key=${KEY}",
        "/only/a/path",
        "",
    ],
)
def test_a_placeholder_before_the_path_is_refused(url: str) -> None:
    with pytest.raises(Refused) as refused:
        fill_url(url, known(host="evil.example", port="1", x="x", user="u", scheme="http", url="http://evil.example"))
    assert refused.value.fault == "definition"


@pytest.mark.parametrize("path", ["/a/{x}", "/a/.{dot}/b", "/a/{dot}{dot}/b", "/a/%2e{dot}/b", "/a/{none}/b"])
def test_a_value_cannot_lead_to_another_path(path: str) -> None:
    with pytest.raises(Refused, match=r"cannot be put into the path|needs a value"):
        fill_url(f"https://api.example{path}", known(x="..", dot=".", none=""))


def test_what_is_not_ascii_in_a_url_is_percent_encoded() -> None:
    assert fill_url("https://api.example/退?q={q}", known(q="货")) == "https://api.example/%E9%80%80?q=%E8%B4%A7"
