"""`python -m osler`."""

from osler.cli import main

main()
