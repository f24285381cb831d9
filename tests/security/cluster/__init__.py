"""Attacks on the way of work into a cluster; they run on a real control plane as well."""
