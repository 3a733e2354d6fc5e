"""Tools that are HTTP endpoints of a definition: the performer of `http_request`."""
