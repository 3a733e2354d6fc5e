"""A model's SPEC: its forms, and what can be known to be wrong with one before anybody is asked.

Only what is certain is called wrong: an invalid form, an unknown provider. Whether a model of that
name exists is the provider's to say; whether its file, its script or its key is there depends on where and when it is
used, so `start_checks` looks at that.
"""

import difflib
import re
from typing import get_args

from msgspec import Struct

from .provider_models import extra_for

FORMS = (
    "`local`, `local:FILE.gguf`, `script:PATH`, `openai:NAME` (with a base URL for any compatible server), "
    "`<provider>:NAME`"
)
OURS = ("local", "script", "openai")
_SPEC = re.compile(r"([a-z][a-z0-9_./-]*)(?::([^\0]+))?")
_NAMED = {"script": "PATH"}
"""What comes after the colon, where it is not NAME."""


class Wrong(Struct, frozen=True):
    """What is wrong with a SPEC, and what would be right."""

    text: str
    hint: str
    everywhere: bool = True
    """False: only here, because something is not installed."""


def parts(spec: str) -> tuple[str, str]:
    """What comes before the first colon and after it; both empty if it is not in the form of a SPEC."""
    found = _SPEC.fullmatch(spec)
    kind, name = (found[1], found[2] or "") if found else ("", "")
    return (kind, name) if kind == "local" or name.strip() else ("", "")


def wrong(spec: str) -> Wrong | None:
    kind = parts(spec)[0]
    if not kind:
        return Wrong(f"{spec!r} names no model" if spec.strip() else "no model is named", _near(spec, OURS))
    if kind in OURS:
        return None
    if "://" in spec:
        return Wrong(f"the name of a {kind} model is an address", "an address is set with --base-url, for openai:NAME")
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.providers import infer_provider_class
    except ImportError:
        hint = _near(spec, OURS) if _like(kind, OURS) else f"run `pip install '{extra_for(kind)}'`"
        return Wrong(f"{spec!r} needs pydantic-ai, which is not installed", hint, everywhere=False)
    try:
        infer_provider_class(kind)
    except (ValueError, UserError):
        return Wrong(f"there is no provider {kind!r} of models", _near(spec, (*OURS, *_providers())))
    except ImportError:
        hint = f"run `pip install '{extra_for(kind)}'`"
        return Wrong(f"{spec!r} needs the library of its provider, which is not installed", hint, everywhere=False)
    return None


def _near(spec: str, kinds: tuple[str, ...]) -> str:
    """A hint: the SPEC that was meant, or all there are."""
    before, _, after = spec.partition(":")
    kind = _like(before, kinds)
    if not kind:
        return f"it can be {FORMS}"
    name = after.strip() or ("" if kind == "local" else _NAMED.get(kind, "NAME"))
    meant = f"{kind}:{name}" if name else kind
    return f"did you mean {meant!r}?"


def _like(kind: str, kinds: tuple[str, ...]) -> str:
    return next(iter(difflib.get_close_matches(kind.strip().casefold()[:80], kinds, n=1)), "")


def _providers() -> list[str]:
    from pydantic_ai.models import KnownModelName

    names = [str(name) for name in get_args(KnownModelName.__value__)]
    return list(dict.fromkeys(name.partition(":")[0] for name in names if ":" in name))
