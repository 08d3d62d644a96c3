//! MPEG-TS.
