//! The model of "Aspera FASPstream for near-live and live video streaming" (white paper, April
//! 2015), as printed, beside the same computed without its slips.
//!
//! The paper's *block* is a data packet, its *readchunk* a number of blocks that the player gets at
//! a time, its *request* a NAK. All times begin when a block would arrive if it was not lost, one
//! one-way delay after it was sent: "wait M RTTs" means M round trips after that.
//!
//! The equations are printed with these slips:
//!
//! 1. Equation 2 has the exponent M + 1. Equations 3 to 5 give it M = 5 and the exponent 5, which
//!    is equation 2 at M = 4. At M = 5 it promises 50 times longer ([`printed_glitch_probability`],
//!    [`glitch_probability`]).
//! 2. The text counts requests that are lost, and equation 2 does not: a round fails if the request
//!    or its answer is lost ([`round_failure`], [`glitch_probability_by_rounds`]). At M = 5 that is
//!    30 times as many glitches as by equation 2, which still are fewer than printed.
//! 3. Equations 6 to 8 are expected numbers of skips in 3000 readchunks, and are read as a share of
//!    the time ([`expected_skips`], [`at_least_one`]).
//! 4. A buffer of "the order of 0.5 seconds" is advised. It has room for two rounds of 200 ms, and
//!    its glitches are seconds apart, by the paper's own equation 2 as well.
//! 5. The numbers of blocks belong to 1371 to 1373 bytes of payload, not to the 1464 bytes that are
//!    said ([`blocks_per_second`]).
//! 6. Equation 1 gives the same symbol to the probability of success that equation 2 gives to
//!    failure.
//! 7. Equation 10 subtracts the arrival of the readchunk's own first block, and then times that
//!    count from the begin of the stream ([`chunk_lateness_as_printed`], [`chunk_lateness`]).
//! 8. The last two of 2500 blocks are said to arrive within three fifths of a second: two rounds
//!    and a one-way delay are half a second. And it is an expectation, not a worst case
//!    ([`BlocksByRound`]).

mod cases;
mod equations;
mod lateness;

pub use cases::{BLOCK_BYTES, CHUNKS, Case, LOSS, READCHUNK, ROUND_TRIP, TRANSFERS};
pub use equations::{
    BlocksByRound, at_least_one, blocks_per_second, expected_skips, glitch_probability,
    glitch_probability_by_rounds, mean_time_to_skip, printed_glitch_probability, received,
    round_failure, rounds_within,
};
pub use lateness::{chunk_lateness, chunk_lateness_as_printed, lateness, requests_fit};
