"""Methods of one reading: the model alone, step by step, or after one search.

`episode` also holds what every further method that searches is a loop over.
"""
