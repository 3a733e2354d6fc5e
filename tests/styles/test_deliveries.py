"""The files that a reply delivers, and what only looks like one."""

import json
import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.styles import reply_files as reading
from ripstop.styles.file_naming import named_path
from ripstop.styles.reply_files import MAX_BLOCKS, MAX_LINES, Delivery, Edit, Unclear, WholeFile

CONTROL = '{"content": "done", "decisions": {"approved": true}}'


def deliveries(text: str) -> list[Delivery]:
    return list(reading.deliveries(text))


def files(text: str) -> dict[str, str]:
    found = deliveries(text)
    assert all(isinstance(one, WholeFile) and one.complete for one in found), found
    return {one.path: one.content for one in found if isinstance(one, WholeFile)}


@pytest.mark.req("S1-45", "S1-46")
@pytest.mark.parametrize(
    "line",
    [
        "collab/menu.md",
        "  collab/menu.md  ",
        "`collab/menu.md`",
        "**collab/menu.md**",
        "**`collab/menu.md`**:",
        "### collab/menu.md",
        "### `collab/menu.md`",
        "#collab/menu.md",
        "collab/menu.md:",
        "File: collab/menu.md",
        "File: `collab/menu.md`",
        "**File:** collab/menu.md",
        "**File: collab/menu.md**",
        "文件：collab/menu.md",
        "1. `collab/menu.md`",
        "- collab/menu.md：",
    ],
)
def test_a_path_above_a_block_makes_it_a_file(line: str) -> None:
    assert files(f"Here it is.\n\n{line}\n```markdown\n# Menu\n\nsoup\n```\n\n{CONTROL}") == {
        "collab/menu.md": "# Menu\n\nsoup\n"
    }


@pytest.mark.parametrize(
    "path",
    [
        "a.py",
        "collab/菜单.md",
        "collab/胡辣汤/方案.html",
        ".gitignore",
        "bin/run",
        "Makefile",
        "a..b.txt",
        "../up.txt",
        "/etc/hosts.txt",
        "x-1_2+3.tar.gz",
        "übung.py",
        "song.mp3",
        "app/[id]/page.tsx",
    ],
)
def test_knows_a_path_when_it_sees_one(path: str) -> None:
    assert named_path(path) == (path, False)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Done.",
        "Here is the file collab/menu.md",
        "The file is this:",
        "请看下面的文件：",
        "以下是collab/menu.md的内容：",
        "好的，collab/menu.md",
        "</html>",
        "src/",
        "*/",
        "//",
        "3.5",
        "https://example.org/a.md",
        "print(a.b)",
        "a = b/c",
        "```",
        "─────",
        "{}",
        "x" * 5000 + ".md",
        "In `collab/menu.md` I changed this:",
        "Run `collab/menu.sh`:",
        "Tests for `menu.py`:",
        "A part of `menu.py`:",
        "**Updated menu.py**",
        "src/a.py and src/b.py",
        "src/a.py src/b.py",
        "`a.py` and `b.py`:",
        "new folder/x.md",
    ],
)
def test_prose_is_never_a_path(line: str) -> None:
    assert named_path(line) is None


@pytest.mark.parametrize("path", ["x" * 300 + ".md", "a\x00.md", "\x1b[31ma.md", "a\u202eb.md", "../a.md", "~/a.md"])
def test_a_path_that_cannot_be_written_is_a_path_so_that_it_is_refused(path: str) -> None:
    assert files(f"{path}\n```\nrest\n```\n") == {path: "rest\n"}


@pytest.mark.parametrize(
    "line",
    [
        "`my notes/to do.md`",
        "my notes/to do.md",
        "**my notes/to do.md**",
        "### my notes/to do.md:",
        "File: my notes/to do.md",
        "Here is `my notes/to do.md`:",
    ],
)
def test_a_path_may_have_spaces(line: str) -> None:
    assert files(f"{line}\n```\nrest\n```\n") == {"my notes/to do.md": "rest\n"}


@pytest.mark.parametrize(
    "line",
    [
        "Here is `collab/x.py`:",
        "Here's the updated `collab/x.py`:",
        "The complete content of **collab/x.py**:",
        "First, create `collab/x.py`:",
        "2. Save this as `collab/x.py`:",
        "I've written it to `collab/x.py`:",
        "Here is collab/x.py:",
        "以下是 `collab/x.py` 的完整内容：",
        "更新后的文件 `collab/x.py`：",
    ],
)
@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_sentence_that_only_announces_a_file_names_it(line: str, between: str) -> None:
    assert files(f"Done.\n\n{line}{between}```python\nx = 1\n```\n{CONTROL}") == {"collab/x.py": "x = 1\n"}


@pytest.mark.parametrize(
    ("block", "content"),
    [
        ("```python\n# collab/x.py\nx = 1\n```", "x = 1\n"),
        ("```\n// collab/x.py\nx = 1\n```", "x = 1\n"),
        ("```js\n/* collab/x.py */\nx = 1\n```", "x = 1\n"),
        ("```html\n<!-- collab/x.py -->\nx = 1\n```", "x = 1\n"),
        ("```sql\n-- collab/x.py\nx = 1\n```", "x = 1\n"),
        ("```python\n# File: `collab/x.py`\nx = 1\n```", "x = 1\n"),
        ("```python\n#!/usr/bin/env python3\n# collab/x.py\nx = 1\n```", "#!/usr/bin/env python3\nx = 1\n"),
        ("```python collab/x.py\nx = 1\n```", "x = 1\n"),
        ("```python:collab/x.py\nx = 1\n```", "x = 1\n"),
        ('```python title="collab/x.py"\nx = 1\n```', "x = 1\n"),
        ("~~~collab/x.py\nx = 1\n~~~", "x = 1\n"),
    ],
)
def test_a_block_may_name_its_own_file(block: str, content: str) -> None:
    assert files(f"So:\n{block}\n{CONTROL}") == {"collab/x.py": content}


def test_a_path_above_a_block_leaves_its_first_comment_in_it() -> None:
    assert files("a.py\n```python\n# a.py\nx = 1\n```\n") == {"a.py": "# a.py\nx = 1\n"}


@pytest.mark.parametrize(
    "block",
    [
        "```python\n# os.path\nx\n```",
        "```python\n# see notes\nx\n```",
        "```markdown\n# notes.md\nx\n```",
        "```sh\n#!/bin/sh\nmake\n```",
        "```python\nx\n```",
        "```python {linenos=1}\nx\n```",
        "```https://example.org/a.py\nx\n```",
        "```\n# a.b\n```",
    ],
)
def test_an_example_is_neither_delivered_nor_warned_of(block: str) -> None:
    assert deliveries(f"For example:\n{block}\n{CONTROL}") == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("In `collab/x.py` I changed this:\n```\nx\n```", "collab/x.py"),
        ("new folder/x.md\n```\nx\n```", "folder/x.md"),
        ("my file.py\n```\nx\n```", "file.py"),
        ("I ran app.py and got:\n```\nx\n```", "app.py"),
        ("So:\n```sh\n# src/app.py\npython src/app.py\n```", "src/app.py"),
        ("So:\n```\n# bin/run\nx\n```", "bin/run"),
    ],
)
def test_a_block_next_to_a_path_that_is_only_mentioned_is_unclear(text: str, path: str) -> None:
    (unclear,) = deliveries(f"{text}\n{CONTROL}")
    assert isinstance(unclear, Unclear) and unclear.path == path and repr(path) in unclear.reason


def test_the_control_object_below_a_mentioned_path_is_not_unclear() -> None:
    assert deliveries(f"I changed `a.py`, and this is it:\n```json\n{CONTROL}\n```") == []


def test_blank_lines_may_follow_a_marked_path_but_not_a_bare_one() -> None:
    assert files("**a.py**\n\n```python\nx = 1\n```\n") == {"a.py": "x = 1\n"}
    assert deliveries(f"I changed\na.py\nb.py\n\n```json\n{CONTROL}\n```\n") == []


@pytest.mark.parametrize("fence", ["```", "````", "~~~", "~~~~~", "```python", "~~~ html {x=1}", "``` a b"])
def test_any_fence_will_do(fence: str) -> None:
    closing = re.match(r"[`~]+", fence)
    assert closing
    assert files(f"a.py\n{fence}\nx = 1\n{closing[0]}\n") == {"a.py": "x = 1\n"}


@pytest.mark.parametrize("space", ["\u3000", "\u00a0", "\u2003", "\v", "\f", " \t"])
def test_white_space_behind_a_fence_is_nothing(space: str) -> None:
    """Models write the ideographic space. A fence that did not close would swallow the file behind it."""
    assert files(f"a.md\n```{space}\nx\n```{space}\n\nb.md\n```\ny\n```\n{CONTROL}") == {"a.md": "x\n", "b.md": "y\n"}
    assert deliveries(f"Some code:\n```{space}\nx\n```{space}\n{CONTROL}") == []


def test_several_files_in_order() -> None:
    text = "a.py\n```\n1\n```\n\nand\n\nb.py\n```\n2\n```\na.py\n```\n3\n```\n"
    assert [(one.path, one.content) for one in deliveries(text) if isinstance(one, WholeFile)] == [
        ("a.py", "1\n"),
        ("b.py", "2\n"),
        ("a.py", "3\n"),
    ]


def test_a_block_without_a_path_is_not_a_file() -> None:
    assert deliveries(f"Run this:\n```sh\nmake\n```\n\n```json\n{CONTROL}\n```") == []


def test_the_control_object_is_not_a_file_even_below_a_path() -> None:
    assert deliveries(f"I have changed:\ncollab/menu.md\n```json\n{CONTROL}\n```") == []
    assert files(f"flow.json\n```json\n{CONTROL}\n```") == {"flow.json": CONTROL + "\n"}


# Fences inside files


README = "# Tool\n\n## Tree\n```\ntool/\n├── a.py\n└── b/\n```\n\n## Use\n\n```sh\nmake\n```\nThat is all.\n"


def test_blocks_in_a_document_with_fences_of_the_same_length_stay_in_it() -> None:
    text = f"collab/README.md\n```\n{README}```\n\ncollab/b.md\n```\nb\n```\n\n```json\n{CONTROL}\n```\n"
    assert files(text) == {"collab/README.md": README, "collab/b.md": "b\n"}


def test_a_block_with_an_info_string_stays_in_any_file() -> None:
    code = '"""\n```python\nrun()\n```\n"""\n'
    assert files(f"a.py\n```python\n{code}```\n") == {"a.py": code}


def test_a_longer_fence_keeps_everything_in() -> None:
    content = "```\n\n~~~\nb.py\n```\nx\n```\n"
    assert files(f"a.md\n````\n{content}````\n") == {"a.md": content}


def test_code_ends_at_the_first_bare_fence_even_if_text_follows_at_once() -> None:
    assert files("a.py\n```\nx = 1\n```\nRun it:\n```\npython a.py\n```\n") == {"a.py": "x = 1\n"}


def test_a_document_ends_before_a_block_that_follows_it() -> None:
    text = "a.md\n```\n# A\n```\n\nThen run:\n```\nmake\n```\n"
    assert files(text) == {"a.md": "# A\n"}


def test_a_document_does_not_swallow_the_file_behind_it() -> None:
    text = "a.md\n```\n# A\n```\nDone, and now:\n\nb.md\n```\n# B\n```\n"
    assert files(text) == {"a.md": "# A\n", "b.md": "# B\n"}
    assert files("a.md\n```\n# A\n```\nb.md\n```\n# B\n```\n") == {"a.md": "# A\n", "b.md": "# B\n"}


def test_a_document_followed_by_text_at_once_ends_at_its_fence() -> None:
    assert files(f"a.md\n```\n# A\n```\nThat is it.\n\n```json\n{CONTROL}\n```\n") == {"a.md": "# A\n"}
    assert files(f"a.md\n```\n# A\n```\n{CONTROL}\n") == {"a.md": "# A\n"}


def test_a_nested_block_without_a_path_does_not_hide_a_file() -> None:
    text = "So:\n```markdown\n# X\n```sh\nmake\n```\nend\n```\n\na.py\n```python\nx = 1\n```\n"
    assert files(text) == {"a.py": "x = 1\n"}


def test_a_file_in_a_list_loses_the_indentation_of_the_list() -> None:
    text = "1. `a.py`\n   ```python\n   if x:\n       y()\n\n   ```\n"
    assert files(text) == {"a.py": "if x:\n    y()\n\n"}


def test_fences_that_are_indented_further_are_text() -> None:
    content = "- do:\n  ```\n  make\n  ```\n"
    assert files(f"a.txt\n```\n{content}```\n") == {"a.txt": content}


# Unclosed files


def test_an_unclosed_file_goes_to_the_end_and_is_not_complete() -> None:
    assert deliveries("a.py\n```\nx = 1\ny = ") == [WholeFile("a.py", "x = 1\ny = \n", complete=False)]
    assert deliveries("a.py\n```") == [WholeFile("a.py", "", complete=False)]


@pytest.mark.parametrize("control", [CONTROL, f"```json\n{CONTROL}\n```", json.dumps(json.loads(CONTROL), indent=2)])
def test_an_unclosed_file_ends_before_the_control_object(control: str) -> None:
    text = f"a.css\n```css\nbody {{\n  x: y;\n}}\n\n{control}\n"
    assert deliveries(text) == [WholeFile("a.css", "body {\n  x: y;\n}\n", complete=False)]


def test_an_unclosed_file_ends_before_the_next_file() -> None:
    text = "a.py\n```python\nx = 1\n\nb.py\n```python\ny = 2\n```\n"
    assert deliveries(text) == [WholeFile("a.py", "x = 1\n", complete=False), WholeFile("b.py", "y = 2\n")]


# Thoughts


def test_thoughts_deliver_nothing() -> None:
    thought = "<thinking-content-1>\nMaybe\n\na.py\n```\nno\n```\n</thinking-content-1>\n"
    assert files(f"{thought}\n\nb.py\n```\nyes\n```\n") == {"b.py": "yes\n"}
    assert files("I could write\n\na.py\n```\nno\n```\n</think>\nb.py\n```\nyes\n```\n") == {"b.py": "yes\n"}
    assert deliveries("<think>\na.py\n```\nno\n```\n") == []
    assert files("<think>a.py\n```\n</think>b.py\n```\nyes\n```\n") == {"b.py": "yes\n"}


def test_a_file_may_speak_of_thoughts() -> None:
    content = 'TAG = "<think>"\n'
    assert files(f"a.py\n```\n{content}```\n\nb.py\n```\n1\n```\n") == {"a.py": content, "b.py": "1\n"}


# Edits


def edit(search: str, replace: str) -> str:
    old, new = (text and text + "\n" for text in (search, replace))
    return f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


@pytest.mark.req("S1-45")
@pytest.mark.parametrize(
    "text",
    [
        "a.py\n```python\n{}```\n",
        "```python\na.py\n{}```\n",
        "`a.py`\n\n~~~~\n{}~~~~\n",
        "a.py\n{}",
        "a.py\n```\n{}\n\n```\n",
    ],
)
def test_a_block_with_markers_is_an_edit(text: str) -> None:
    assert deliveries(text.format(edit("x = 1", "x = 2\ny = 3"))) == [Edit("a.py", "x = 1\n", "x = 2\ny = 3\n")]


def test_several_edits_in_one_block_and_in_several() -> None:
    text = f"a.py\n```\n{edit('1', '2')}{edit('3', '')}b.py\n{edit('', 'new')}```\n```\n{edit('5', '6')}```\n"
    assert deliveries(text) == [
        Edit("a.py", "1\n", "2\n"),
        Edit("a.py", "3\n", ""),
        Edit("b.py", "", "new\n"),
        Edit("b.py", "5\n", "6\n"),
    ]


def test_fences_inside_an_edit_are_text() -> None:
    change = edit("```\nold\n```", "```sh\nnew\n```")
    text = f"a.md\n```\n{change}```\nb.py\n```\n1\n```\n"
    assert deliveries(text) == [Edit("a.md", "```\nold\n```\n", "```sh\nnew\n```\n"), WholeFile("b.py", "1\n")]


def test_an_edit_of_no_file_has_an_empty_path() -> None:
    assert deliveries(f"```\n{edit('1', '2')}```\n") == [Edit("", "1\n", "2\n")]


def test_an_edit_that_lacks_a_marker_is_not_complete() -> None:
    assert deliveries("a.py\n```\n<<<<<<< SEARCH\n1\n```\n") == [Edit("a.py", "1\n", "", complete=False)]
    assert deliveries("a.py\n```\n<<<<<<< SEARCH\n1\n=======\n2\n") == [Edit("a.py", "1\n", "2\n\n", complete=False)]
    text = f"a.py\n```\n<<<<<<< SEARCH\n1\n{edit('3', '4')}```\n"
    assert deliveries(text) == [Edit("a.py", "1\n", "", complete=False), Edit("a.py", "3\n", "4\n")]


# Any text


_pieces = st.sampled_from(
    [
        *("```", "````", "~~~", "```json", "   ```", "a.md", "collab/b.py", "**c.md**:", "<think>", "</think>", ""),
        *(
            "<<<<<<< SEARCH",
            "=======",
            ">>>>>>> REPLACE",
            "{",
            "}",
            CONTROL,
            "text",
            "\t",
            "\r",
            "\u2028",
            "文件：d.md",
            "Here is `e.py`:",
            "# f.py",
            "```python g.py",
            "In `h.py`:",
            "my notes/to do.md",
        ),
    ]
)


@settings(max_examples=800)
@given(st.lists(_pieces | st.text(max_size=8), max_size=30).map("\n".join))
def test_any_text_is_read(text: str) -> None:
    for one in deliveries(text):
        assert isinstance(one, Delivery)


_lines = st.lists(_pieces | st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12))
_paths = st.from_regex(r"(collab/)?[a-z汤é]{1,8}(/[a-z-]{1,5}){0,2}\.(md|py|html|txt|json)", fullmatch=True)


def rendered(path: str, content: str, kind: str) -> str:
    longest = max((len(run) for run in re.findall(re.escape(kind) + "+", content)), default=0)
    fence = kind * max(3, longest + 1)
    return f"{path}\n{fence}\n{content}{fence}\n"


def is_control(content: str) -> bool:
    return content.strip().startswith("{")


def holds_edit(content: str) -> bool:
    return "SEARCH" in content


@pytest.mark.long
@settings(max_examples=300)
@given(st.lists(st.tuples(_paths, _lines, st.sampled_from("`~")), max_size=4), st.booleans())
def test_files_with_any_content_come_back_as_they_were(some: list[tuple[str, list[str], str]], blank: bool) -> None:
    wanted: list[Delivery] = []
    text = "Here you are:\n\n"
    for path, lines, kind in some:
        content = "".join(line + "\n" for line in lines)
        if is_control(content) or holds_edit(content):
            continue  # these are no whole files, whatever stands above them
        wanted.append(WholeFile(path, content))
        # right behind a document, a path above an empty line could just as well be a block of the document
        text += "\n" if blank or not lines or not lines[0].strip() else ""
        text += rendered(path, content, kind)
    assert deliveries(text + f"\n```json\n{CONTROL}\n```\n") == wanted


@pytest.mark.parametrize(
    "unit",
    [
        *("a.md\n```x\n", "```x\n", "```x\n```y\n```\n", "a.md\n```info\n```\ny\n", "a.py\n```\n", "```x\n~~~y\n"),
        *("a.py\n```\n{\n", "x.py\n<<<<<<< SEARCH\n", "```\n<<<<<<< SEARCH\n=======\n", "# " * 500 + "\n```\n"),
        *(
            "<think>\n",
            "**`__" * 500 + "\n```\n",
            "`a` " * 500 + ":\n```\n",
            "{\n",
            "a.md\n```\n" + '{"a": ' * 40 + "\n",
        ),
    ],
)
def test_a_long_hostile_text_is_read_as_well(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    assert len(deliveries(text)) <= MAX_BLOCKS + 1


def test_the_control_object_behind_a_long_hostile_file_is_looked_for_in_a_part_of_it() -> None:
    """Every line begins an object that ends with the text, if at all."""
    text = "a.py\n```\n" + ("{" + '"a",' * 4500 + "\n") * 50 + "}\n"
    assert [one.path for one in deliveries(text)] == ["a.py"]


TOO_MANY = "y\n" * MAX_LINES


def test_files_behind_the_lines_that_are_read_are_warned_of() -> None:
    text = f"a.md\n```\nx\n```\n{TOO_MANY}b.md\n```\nz\n```\n{CONTROL}"
    first, warning = deliveries(text)
    assert first == WholeFile("a.md", "x\n")
    assert isinstance(warning, Unclear)
    assert "100,000 lines" in warning.reason


def test_a_file_that_goes_beyond_the_lines_that_are_read_is_not_cut_off() -> None:
    (warning,) = deliveries(f"a.md\n```\n{TOO_MANY}```\n")
    assert isinstance(warning, Unclear)
    assert "'a.md'" in warning.reason


def test_many_lines_without_a_file_behind_them_are_not_warned_of() -> None:
    assert deliveries(f"a.md\n```\nx\n```\n{TOO_MANY}{CONTROL}") == [WholeFile("a.md", "x\n")]


def test_two_mebibytes_of_fences_take_little_memory() -> None:
    text = "```\n" * (2**21 // 4) + CONTROL
    tracemalloc.start()
    try:
        deliveries(text)
        assert tracemalloc.get_traced_memory()[1] < 60 * 2**20
    finally:
        tracemalloc.stop()
