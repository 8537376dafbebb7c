"""Does a gateway that serves for a long time, well and badly, stay as it was? Memory, tasks, sockets and descriptors tell."""
