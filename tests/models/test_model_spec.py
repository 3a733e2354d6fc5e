import sys

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.models.router import wrong


@pytest.mark.parametrize("spec", ["local", "local:my.gguf", "script:x", "openai:any/thing:free"])
def test_our_own_forms_are_right_whatever_they_name(spec: str) -> None:
    assert wrong(spec) is None


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("lcoal", "did you mean 'local'?"),
        ("Local", "did you mean 'local'?"),
        ("openai", "did you mean 'openai:NAME'?"),
        ("script:", "did you mean 'script:PATH'?"),
        ("openai: ", "did you mean 'openai:NAME'?"),
        ("nosuch", "it can be `local`"),
        ("", "it can be `local`"),
    ],
)
def test_a_form_that_there_is_not_is_wrong_everywhere(spec: str, hint: str) -> None:
    found = wrong(spec)
    assert found is not None
    assert hint in found.hint
    assert found.everywhere


@pytest.mark.parametrize("spec", ["anthropic:any", "google:any", "gateway/openai:any"])
def test_a_provider_that_is_known_is_not_doubted(spec: str) -> None:
    pytest.importorskip("pydantic_ai")
    assert wrong(spec) is None


@pytest.mark.parametrize(("spec", "hint"), [("antropic:x", "'anthropic:x'"), ("lcoal:f.gguf", "'local:f.gguf'")])
def test_a_provider_that_nobody_knows_is_wrong(spec: str, hint: str) -> None:
    pytest.importorskip("pydantic_ai")
    found = wrong(spec)
    assert found is not None and hint in found.hint


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.exceptions", None)
    found = wrong("anthropic:x")
    assert found is not None
    assert "ripstop[anthropic]" in found.hint
    assert not found.everywhere


@for_all(st.text(alphabet=st.characters(blacklist_characters=":")))
def test_only_local_stands_without_a_name(text: str) -> None:
    assert (wrong(text) is None) is (text == "local")
