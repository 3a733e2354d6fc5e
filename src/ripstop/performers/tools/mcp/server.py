"""An MCP server as the settings name it, and what its tools are like."""

from collections.abc import Mapping

from msgspec import Struct

from ripstop.runtime.performers import Kind

from .card import ToolCard


class ToolRule(Struct, frozen=True):
    """What the settings say about one tool; `None`: nothing."""

    kind: Kind | None = None
    approve: bool | None = None


class ServerSpec(Struct, frozen=True, kw_only=True):
    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    """Names of variables that the server gets."""
    hints: bool = False
    """Whether the user believes what the server says about the effects of its tools."""
    timeout: float = 60.0
    rules: Mapping[str, ToolRule] = {}
    project: str = ""
    """The folder of the project whose file names it; empty: the user's own choice."""
    allow_private: bool = False
    """Whether its `url` may lead to a private address."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes it the same server: another command, or the same one in another project, is another server."""
        return self.name, self.project, self.url or "\0".join(self.command)

    def kind(self, card: ToolCard) -> Kind:
        """What a crash in the middle of a call means. A hint is a claim, so it counts only if the user believes it."""
        said = self._rule(card).kind
        if said is not None:
            return said
        if self.hints and card.hint("readOnlyHint"):
            return Kind.PURE
        return Kind.KEYED if self.hints and card.hint("idempotentHint") else Kind.UNSAFE

    def needs_approval(self, card: ToolCard) -> bool:
        """Whether a person agrees before each call. A server that says nothing may destroy, by the specification."""
        said = self._rule(card).approve
        if said is not None:
            return said
        return self.hints and not card.hint("readOnlyHint") and card.annotations.get("destructiveHint") is not False

    def _rule(self, card: ToolCard) -> ToolRule:
        return self.rules.get(card.tool, ToolRule())
