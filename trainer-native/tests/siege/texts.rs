//! One text under another name, in another form, or in parts.
