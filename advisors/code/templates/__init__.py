"""Code that advice pastes, as modules that the linter and the type checker read. `template.py`
takes text from them.

They are never imported. What they import from `placeholders` is put in when the text is made.
"""
