"""The membership audit: was this record, or this person's set of records, in the training data?"""
