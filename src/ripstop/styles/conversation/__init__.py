"""Bots as files: `bot.yaml`, and configurations in the form that bots of the original system have."""


# Sessions of bots: what an application does with the conversation style.
