"""The methods that the papers compare with: one method, one file."""
