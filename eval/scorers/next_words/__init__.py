"""Next words: answers.py is the entrance, readings.py decides which tokens to read, whole_words.py which are words."""
