"""A team's own policy: read from a file as data, checked, compared, and applied to findings"""
