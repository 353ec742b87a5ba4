//! Files that a folder holds beside those of its run.
