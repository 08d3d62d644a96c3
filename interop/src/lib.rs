//! Tests against other people's programs.
