"""Sessions of bots: what an application does with the conversation style."""
