"""Boards: MAIN decides, specialists report, a policy verifies. Plan, history and reports are files."""
