"""What a report says, before it has a form: headline, tables, groups of findings, advice."""
