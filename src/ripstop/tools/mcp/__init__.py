"""Tools of MCP servers. What imports the SDK is itself imported only when a server is connected to."""
