"""How many tokens a model can take, and how a server says that a prompt has too many."""

import pytest

from ripstop.models.windows import DEFAULT_WINDOW, LOCAL_WINDOW, says_too_long, window_of

SAID = [
    '{"error": {"code": "context_length_exceeded", "message": "…"}}',
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Your input exceeds the context window of this model.",
    '{"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192}}',
    "the request exceeds the available context size. try increasing the context size",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Input is too long for requested model.",
    "the input length exceeds the context length",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Please reduce the length of the messages or completion.",
    "too many tokens: total number of tokens in the prompt exceeds the limit",
    "Range of input length should be [1, 30720]",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "You passed 9000 input tokens and requested 100 output tokens. However, the model's context length is only 8192.",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000",
    "Trying to keep the first 4500 tokens when context the overflows. However, the model is loaded with 4096 tokens",
    "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
    '{"error": {"code": "tokens_limit_reached", "message": "Request body too large"}}',
    "litellm.ContextWindowExceededError: …",
    "Input length 9000 exceeds the maximum length 8192",
    "messages too long",
    '{"error": {"type": "request_too_large", "message": "…"}}',
    "输入长度超过限制",
    "输入的 token 数超出模型上下文长度",
    "提示词过长，请缩短后重试",
]
OTHERS = [
    "Invalid value for 'tools'.",
    "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens",
    "your API key input is too long",
    "密钥输入过长",
    "输入频率超过限制",
    "The error message is 5 characters too long.",
    "Unknown model. The context of this error is not known.",
    "",
]


@pytest.mark.parametrize("said", SAID)
def test_knows_how_servers_say_that_a_prompt_is_too_long(said: str) -> None:
    assert says_too_long(400, said)
    assert not says_too_long(429, said), "a limit of the rate, which passes"
    assert not says_too_long(401, said)


@pytest.mark.parametrize("said", OTHERS)
def test_other_refusals_do_not_count_as_too_long(said: str) -> None:
    assert not says_too_long(400, said) and not says_too_long(500, said)


def test_a_body_that_is_too_large_for_a_proxy_is_too_long() -> None:
    assert says_too_long(413, "<html>Request Entity Too Large</html>")


def test_a_window_is_that_of_the_model_else_of_its_provider_else_the_default() -> None:
    windows = {"openai:small": 4096, "openai": 32_000, "local": 100_000, "script:a.jsonl": 2000}
    found = [window_of(spec, windows) for spec in ("openai:small", "openai:other", "anthropic:x", "script:a.jsonl")]
    assert found == [4096, 32_000, DEFAULT_WINDOW, 2000]
    assert window_of("script:b.jsonl", windows) == 0, "a script takes anything"
    assert window_of("local", windows) == LOCAL_WINDOW, "it is loaded with no more"
    assert window_of("local:other.gguf", {"local": 4000}) == 4000
