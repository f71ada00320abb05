"""The report as a page of its own, `report.html`."""
