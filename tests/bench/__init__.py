"""
Measurements that anybody can run again: `python -m bench.NAME`.
"""
