"""The report page: its data, charts, parts and HTML."""
