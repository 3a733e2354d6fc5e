"""MCP servers written with the official SDK, which speak the protocols of 2026 and of 2025 as the client likes.

    python -m tests.harness.mcp_servers FILE

With the one it answers that it needs input, with the other it asks in the middle of a call. FILE gets a line for
everything that was really done.
"""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp import UrlElicitationRequiredError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.types import (
    CallToolResult,
    ElicitRequestURLParams,
    ImageContent,
    ListRootsResult,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field


class Order(BaseModel):
    size: Literal["small", "large"]
    number: int = Field(ge=1, le=9, description="How many")
    gift: bool = False


def shop(done: Path, price: str = "The price of an article, in euros.") -> MCPServer:
    server = MCPServer("shop")

    def note(line: str) -> None:
        with done.open("a") as file:
            file.write(f"{line}\n")

    @server.tool(description=price, annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
    def price_of(article: str) -> str:
        if article == "nothing":
            raise ValueError("There is no such article.")
        return "30"

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=False))
    def stock(article: str) -> dict[str, int]:
        """How many there are."""
        return {article: 7}

    @server.tool()
    def delete(article: str, ctx: Context[Any, Any]) -> str:
        """Delete an article."""
        meta = ctx.request_context.meta or {}
        note(f"deleted {article} {meta.get('ripstop/key')}")
        return "deleted"

    @server.tool(structured_output=False)
    def picture() -> CallToolResult:
        """A picture and a text."""
        return CallToolResult(
            content=[ImageContent(data="QUJD" * 1000, mime_type="image/png"), TextContent(text="x" * 250_000)]
        )

    def wanted(article: str) -> Elicit[Order]:
        return Elicit(f"How shall I order \u202e{article}?", Order)

    @server.tool(structured_output=False)
    async def order(article: str, order: Annotated[Order, Resolve(wanted)]) -> str:
        """Order an article; asks how."""
        note(f"ordered {order.number} {order.size} {article}")
        return f"ordered {order.number} {order.size} {article}"

    def roots() -> ListRoots:
        return ListRoots()

    @server.tool(structured_output=False)
    async def where(roots: Annotated[ListRootsResult, Resolve(roots)]) -> str:
        """Where the files are."""
        return " ".join(str(root.uri) for root in roots.roots)

    def sample() -> Sample:
        return Sample([SamplingMessage(role="user", content=TextContent(text="Hello"))], max_tokens=9)

    @server.tool(structured_output=False)
    async def think(thought: Annotated[Any, Resolve(sample)]) -> str:
        """Use the client's model."""
        return str(thought)

    return server


def opening_addresses(done: Path) -> MCPServer:
    """A server of 2025 that wants an address opened first."""
    server = MCPServer("bank")

    @server.tool(structured_output=False)
    async def pay(ctx: Context[Any, Any]) -> str:
        """Pay."""
        if not done.exists():
            done.write_text("asked\n")
            raise UrlElicitationRequiredError(
                [ElicitRequestURLParams(message="Sign in.", url="https://bank.example/in", elicitation_id="1")]
            )
        return "paid"

    return server


if __name__ == "__main__":
    shop(Path(sys.argv[1])).run("stdio")
