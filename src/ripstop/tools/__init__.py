"""Tools: typed functions that agents may call."""
