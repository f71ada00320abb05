"""`ci-bot review`: once or again and again, in full or in short."""
