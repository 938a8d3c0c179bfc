"""The removal audit: has this data set really been removed from the model?"""
