"""Fluency: does a model predict the words of some people more often than those of others?"""
