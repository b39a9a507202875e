"""What keeps us harmless: whose an exception is, looking at the user's objects without running
their code."""
