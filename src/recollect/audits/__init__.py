"""The five audits: evidence in, result out."""
