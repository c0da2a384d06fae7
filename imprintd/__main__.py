"""`python -m imprintd` is the `imprintd` command."""

from imprintd.cli.main import main

main()
