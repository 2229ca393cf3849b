"""Device tables: do they set what the plan needs, when it needs it?"""
