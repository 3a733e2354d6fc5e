"""Text for people: differences, visible characters, courtesy, diagrams. Pure: the same input gives the same text."""
