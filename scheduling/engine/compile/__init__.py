"""What makes machine code of kernels: structs of arrays, the decorators, two algorithms that all share."""
