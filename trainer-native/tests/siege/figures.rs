//! Small figures that say something about the private text, and hostile input.
