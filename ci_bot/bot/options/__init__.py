"""The options of the command line: how they are read, and those that several commands share."""
