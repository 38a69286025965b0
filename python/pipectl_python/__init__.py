"""What pipectl runs inside the user's interpreter: Python 3.8 or newer, and its standard library.

numpy, torch and PIL are used where the user's code has imported them.
"""
