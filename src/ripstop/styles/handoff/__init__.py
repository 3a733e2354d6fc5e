"""Hand-off documents: Markdown files that are passed from owner to owner, in a folder that people and runs share."""
