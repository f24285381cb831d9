"""Loans between queues: offered or asked for, consented to, recalled with notice, over by themselves."""
