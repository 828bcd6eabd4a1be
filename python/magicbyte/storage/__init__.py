"""Reading logs from object stores and other remote file systems: the stores that the core has mounted."""
