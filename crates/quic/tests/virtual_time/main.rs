//! QUIC endpoints, and SRT over QUIC, in virtual time.

mod bed;
mod calls;
mod certificates;
mod duo;
mod floods;
mod plain;
mod sizes;
