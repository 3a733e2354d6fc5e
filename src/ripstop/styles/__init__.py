"""Ways of working together: one room per style, and the turn, replies and files that several of them share."""
