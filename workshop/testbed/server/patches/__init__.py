"""The four ways to change an object in part. Inputs are never changed; results share what stays."""
