"""What a dispatch would refuse, and what would be regretted after it.

What only the platform knows, such as which models are cached, is left to it.
"""
