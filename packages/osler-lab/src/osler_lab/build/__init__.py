"""Makes from the settings what `osler train` explores, judges and teaches with."""
