"""Makes the model of a provider with pydantic-ai: which extra it needs, and which key it gets.

- Each provider needs its own library; if it is missing, the error names ripstop's extra.
- Retries are ours: the libraries' own would multiply them, unseen by limits and rate limits.
- A model's name is never an address. The library of Hugging Face would take one for a server, and send it the key.
"""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ripstop.engine.performers import Refused, Unavailable
from ripstop.security.redaction import redacted, secrets_in

from .api_key import read_key

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider


EXTRAS = (
    "anthropic", "bedrock", "cerebras", "cohere", "crusoe", "google", "groq", "huggingface", "mistral", "openai",
    "openrouter", "snowflake", "zai",
)  # fmt: skip
"""ripstop's extras; each has the name of its provider. All other providers speak OpenAI's protocol."""


_KEYS = {
    "cohere": "CO_API_KEY",
    "huggingface": "HF_TOKEN",
    "openai-chat": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
}
"""Variables that hold a key, where they are not called PROVIDER_API_KEY."""


_AZURE = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")


_NEEDED = {
    "azure": _AZURE,
    "azure-responses": _AZURE,
    "bedrock": ("AWS_DEFAULT_REGION",),
    "google-cloud": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "snowflake": ("SNOWFLAKE_ACCOUNT", "SNOWFLAKE_TOKEN"),
}
"""Variables of providers whose libraries name none of them, or only the first, when they are missing."""


_VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")


def extra_for(provider: str) -> str:
    """ripstop's extra that installs what a provider needs."""
    family = provider.removeprefix("gateway/").partition("-")[0]
    return f"ripstop[{family if family in EXTRAS else 'openai'}]"


def model_of(spec: str) -> "Model[Any]":
    """The model of `<provider>:NAME`, with its key. Raises `Refused`."""
    provider = spec.partition(":")[0]
    if "://" in spec:
        raise Refused(f"The name of a {provider} model is an address, which it cannot be.", fault="definition")
    try:
        from pydantic_ai.models import infer_model

        return infer_model(spec, provider_factory=_provider)
    except ImportError as error:
        raise Unavailable(
            f"{spec!r} needs a library that is not installed ({_missing(error)}). "
            f"Run `pip install '{extra_for(provider)}'`.",
            fault="definition",
        ) from error
    except Refused:
        raise
    except Exception as error:  # each library has its own, as Google's for missing credentials
        said = f"The model {spec!r} cannot be used: {_advice(provider, str(error))}."
        raise Unavailable(said, "definition") from error


def unusable_provider(spec: str) -> str:
    """Why the model of `<provider>:NAME` cannot be used now; empty if it can."""
    try:
        model_of(spec)
    except Refused as error:
        return redacted(str(error), *secrets_in(os.environ))
    return ""


def _advice(provider: str, said: str) -> str:
    """What to set in the environment, if that is what the library misses; else the first sentence that it says.

    The rest of what it says is about classes and functions of the library, which our users do not see.
    """
    needed = [name for name in _NEEDED.get(provider, ()) if not os.environ.get(name)]
    if needed:
        return f"set {' and '.join(needed)} in the environment"
    mentioned = dict.fromkeys(_VARIABLE.findall(said))
    if mentioned and "environment variable" in said:
        return f"set {' or '.join(mentioned)} in the environment"
    return said.partition(". ")[0].rstrip(".")


def _missing(error: ImportError) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    return cause.name or "pydantic-ai"


def _provider(name: str) -> "Provider[Any]":
    from pydantic_ai.providers import infer_provider, infer_provider_class

    if name == "bedrock":
        # The only one whose retries cannot be turned off for a request; this is botocore's own setting.
        os.environ.setdefault("AWS_MAX_ATTEMPTS", "1")
    variable = _KEYS.get(name, f"{name.upper().replace('-', '_')}_API_KEY")
    key = read_key(variable)
    if not key and os.environ.get(variable):
        raise Unavailable(f"The key in {variable} is blank. Set it again.", fault="definition")
    if not key:
        return infer_provider(name)
    make: Callable[..., Provider[Any]] = infer_provider_class(name)
    return make(api_key=key)
