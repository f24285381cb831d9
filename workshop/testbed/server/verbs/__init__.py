"""What the API can do to objects: one module for each verb, used by the HTTP side."""
