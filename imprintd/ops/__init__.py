"""
Running as a service: lock, status socket, warnings, logs, notification, manners.
"""
