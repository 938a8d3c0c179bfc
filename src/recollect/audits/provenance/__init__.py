"""Were this person's texts used to train this model?"""
