"""Graph definitions: read with positions, checked, described by a schema."""
