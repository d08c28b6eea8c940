"""Prompts of the methods to compare with, of judges and of training."""
