"""Process life: from a configuration to an accepting socket, and back."""
