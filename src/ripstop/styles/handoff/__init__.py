"""Hand-off: documents in Markdown, passed from owner to owner."""
