"""From what a person has to encoded data, and names back."""
