"""Graph: agents take turns along the edges of a state graph."""
