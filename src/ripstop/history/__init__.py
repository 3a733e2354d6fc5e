"""What any face may show of runs, as plain data: outline, narration, questions with the text behind them.

Nothing here names a shell command, a key or a button: a face turns a way into one.
"""
