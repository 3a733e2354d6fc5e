"""Keys in texts of lists: hidden, and nothing else is."""

import pytest

from ripstop.faces.web.markup import masked

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("use sk-proj-4f9aQ7x2Lm8Zt3Rb6Yc1 now", "use sk-p… now"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ghp_…"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA…"),
        (f"cookie {JWT}", "cookie eyJh…"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END", "----…"),
        ("api_key: 'a1b2c3d4e5f6'", "api_key: '…'"),
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer …"),
        ('{"password": "correct9horse"}', '{"password": "…"}'),
    ],
)
def test_a_key_is_hidden(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "task-management-systems-of-today are risk-averse-in-principle",
        "The token: is what a model reads.",
        "password: unknown",
        "commit 134cb7371f4a9d2be0c65d1e88aa0f3c27b9d4e1",
        "secret: everything is fine",
        "密码：没有设置",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert masked(text) == text
