"""The test author's powers, wrapped around the row of rooms: a client in process, ready clients, waiting."""
