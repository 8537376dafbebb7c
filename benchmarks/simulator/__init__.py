"""A synthetic day through the real routing code: which strategy wins where? ``python -m benchmarks.simulator``"""
