"""Minimal pairs put before people: forms that open in a browser, the files of answers, and how far people agree."""
