"""An organisation of 500 people, 1,000 queues and 50,000 live workloads, written straight into PostgreSQL.

For benchmarks and load tests: what pages cost where there is much to show. Nothing of it was decided by the
engine; sums over the tree hold, figures over time do not.
"""
