"""What every experiment needs: methods by name, data by name, results that say their origin.

Nothing is imported here: `peers` also runs under interpreters that have neither Mercat nor
scikit-learn.
"""
