"""What a stranger gets: nothing that was not promised, and no secret anywhere."""
