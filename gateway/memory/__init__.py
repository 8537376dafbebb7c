"""What must a session not forget? Thought signatures and reasoning that clients drop, responses that they go on from."""
