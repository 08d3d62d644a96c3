//! retransmission
