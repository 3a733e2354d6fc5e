"""Commands of the conversation style: `chat` and `sessions`."""
