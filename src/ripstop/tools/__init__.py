"""Tools that agents and styles call: files, commands, HTTP, MCP, knowledge; and the folders that they work in."""
