//! Statistics, in the structure that C programs read.

use std::ffi::c_int;
use std::time::Duration;

use punctual::Statistics;
use punctual_sockets::{BufferLevels, Code, Failure, TransferStatistics};

use crate::abi::SocketId;
use crate::border::done;
use crate::library;

/// The bytes of the headers of a packet: those of SRT, UDP and IPv4.
const HEADERS: c_int = 44;

/// `SRT_TRACEBSTATS`; the header explains each field.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[expect(non_snake_case, missing_docs, reason = "the names are libsrt's; the header has the docs")]
pub struct TraceStatistics {
    pub msTimeStamp: i64,
    pub pktSentTotal: i64,
    pub pktRecvTotal: i64,
    pub pktSndLossTotal: c_int,
    pub pktRcvLossTotal: c_int,
    pub pktRetransTotal: c_int,
    pub pktSentACKTotal: c_int,
    pub pktRecvACKTotal: c_int,
    pub pktSentNAKTotal: c_int,
    pub pktRecvNAKTotal: c_int,
    pub usSndDurationTotal: i64,
    pub pktSndDropTotal: c_int,
    pub pktRcvDropTotal: c_int,
    pub pktRcvUndecryptTotal: c_int,
    pub byteSentTotal: u64,
    pub byteRecvTotal: u64,
    pub byteRcvLossTotal: u64,
    pub byteRetransTotal: u64,
    pub byteSndDropTotal: u64,
    pub byteRcvDropTotal: u64,
    pub byteRcvUndecryptTotal: u64,
    pub pktSent: i64,
    pub pktRecv: i64,
    pub pktSndLoss: c_int,
    pub pktRcvLoss: c_int,
    pub pktRetrans: c_int,
    pub pktRcvRetrans: c_int,
    pub pktSentACK: c_int,
    pub pktRecvACK: c_int,
    pub pktSentNAK: c_int,
    pub pktRecvNAK: c_int,
    pub mbpsSendRate: f64,
    pub mbpsRecvRate: f64,
    pub usSndDuration: i64,
    pub pktReorderDistance: c_int,
    pub pktRcvAvgBelatedTime: f64,
    pub pktRcvBelated: i64,
    pub pktSndDrop: c_int,
    pub pktRcvDrop: c_int,
    pub pktRcvUndecrypt: c_int,
    pub byteSent: u64,
    pub byteRecv: u64,
    pub byteRcvLoss: u64,
    pub byteRetrans: u64,
    pub byteSndDrop: u64,
    pub byteRcvDrop: u64,
    pub byteRcvUndecrypt: u64,
    pub usPktSndPeriod: f64,
    pub pktFlowWindow: c_int,
    pub pktCongestionWindow: c_int,
    pub pktFlightSize: c_int,
    pub msRTT: f64,
    pub mbpsBandwidth: f64,
    pub byteAvailSndBuf: c_int,
    pub byteAvailRcvBuf: c_int,
    pub mbpsMaxBW: f64,
    pub byteMSS: c_int,
    pub pktSndBuf: c_int,
    pub byteSndBuf: c_int,
    pub msSndBuf: c_int,
    pub msSndTsbPdDelay: c_int,
    pub pktRcvBuf: c_int,
    pub byteRcvBuf: c_int,
    pub msRcvBuf: c_int,
    pub msRcvTsbPdDelay: c_int,
    pub pktSndFilterExtraTotal: c_int,
    pub pktRcvFilterExtraTotal: c_int,
    pub pktRcvFilterSupplyTotal: c_int,
    pub pktRcvFilterLossTotal: c_int,
    pub pktSndFilterExtra: c_int,
    pub pktRcvFilterExtra: c_int,
    pub pktRcvFilterSupply: c_int,
    pub pktRcvFilterLoss: c_int,
    pub pktReorderTolerance: c_int,
    pub pktSentUniqueTotal: i64,
    pub pktRecvUniqueTotal: i64,
    pub byteSentUniqueTotal: u64,
    pub byteRecvUniqueTotal: u64,
    pub pktSentUnique: i64,
    pub pktRecvUnique: i64,
    pub byteSentUnique: u64,
    pub byteRecvUnique: u64,
}

/// The statistics of a connection. `clear` begins a new interval.
///
/// # Safety
///
/// `output` is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_bstats(
    socket: SocketId,
    output: *mut TraceStatistics,
    clear: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe { srt_bistats(socket, output, clear, 0) }
}

/// The statistics of a connection. The contents of the buffers are the present ones with
/// `instantaneous`, and otherwise the means of about the last second.
///
/// # Safety
///
/// `output` is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_bistats(
    socket: SocketId,
    output: *mut TraceStatistics,
    clear: c_int,
    instantaneous: c_int,
) -> c_int {
    done(|| {
        let statistics = library::of_socket()?.statistics(socket, clear != 0)?;
        let mut converted = convert(&statistics);
        if instantaneous == 0 {
            set_means(&mut converted, &statistics.buffers);
        }
        // SAFETY: the caller says so.
        unsafe { write(converted, output) }
    })
}

/// # Safety
///
/// `output` is null, or can be written.
unsafe fn write(statistics: TraceStatistics, output: *mut TraceStatistics) -> Result<(), Failure> {
    if output.is_null() {
        return Err(Code::InvalidParameter.into());
    }
    // SAFETY: the caller says so.
    unsafe { output.write(statistics) };
    Ok(())
}

/// A count in the 32 bits that libsrt gives it; a larger one stops at the largest.
fn count(number: u64) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

fn long(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn millis(time: Duration) -> c_int {
    c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX)
}

fn float_millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn convert(statistics: &TransferStatistics) -> TraceStatistics {
    let TransferStatistics { total, interval, .. } = statistics;
    let mut output = TraceStatistics {
        msTimeStamp: micros(total.elapsed) / 1_000,
        ..TraceStatistics::default()
    };
    set_totals(&mut output, total);
    set_interval(&mut output, interval);
    set_present(&mut output, total);
    output
}

/// Sets the totals since the connection was made.
fn set_totals(output: &mut TraceStatistics, total: &Statistics) {
    output.pktSentTotal = long(total.packets_sent);
    output.pktRecvTotal = long(total.packets_received);
    output.pktSndLossTotal = count(total.packets_send_lost);
    output.pktRcvLossTotal = count(total.packets_receive_lost);
    output.pktRetransTotal = count(total.packets_retransmitted);
    output.pktSentACKTotal = count(total.acks_sent);
    output.pktRecvACKTotal = count(total.acks_received);
    output.pktSentNAKTotal = count(total.naks_sent);
    output.pktRecvNAKTotal = count(total.naks_received);
    output.usSndDurationTotal = micros(total.send_busy);
    output.pktSndDropTotal = count(total.packets_send_dropped);
    output.pktRcvDropTotal = count(total.packets_receive_dropped);
    output.pktRcvUndecryptTotal = count(total.packets_undecrypted);
    output.byteSentTotal = total.bytes_sent;
    output.byteRecvTotal = total.bytes_received;
    output.byteRcvLossTotal = total.bytes_receive_lost;
    output.byteRetransTotal = total.bytes_retransmitted;
    output.byteSndDropTotal = total.bytes_send_dropped;
    output.byteRcvDropTotal = total.bytes_receive_dropped;
    output.byteRcvUndecryptTotal = total.bytes_undecrypted;
    output.pktSndFilterExtraTotal = count(total.packets_send_filter_extra);
    output.pktRcvFilterExtraTotal = count(total.packets_receive_filter_extra);
    output.pktRcvFilterSupplyTotal = count(total.packets_filter_supplied);
    output.pktRcvFilterLossTotal = count(total.packets_filter_lost);
    output.pktSentUniqueTotal = long(total.packets_sent_unique);
    output.pktRecvUniqueTotal = long(total.packets_received_unique);
    output.byteSentUniqueTotal = total.bytes_sent_unique;
    output.byteRecvUniqueTotal = total.bytes_received_unique;
}

/// Sets the counts of the interval.
fn set_interval(output: &mut TraceStatistics, interval: &Statistics) {
    output.pktSent = long(interval.packets_sent);
    output.pktRecv = long(interval.packets_received);
    output.pktSndLoss = count(interval.packets_send_lost);
    output.pktRcvLoss = count(interval.packets_receive_lost);
    output.pktRetrans = count(interval.packets_retransmitted);
    output.pktSentACK = count(interval.acks_sent);
    output.pktRecvACK = count(interval.acks_received);
    output.pktSentNAK = count(interval.naks_sent);
    output.pktRecvNAK = count(interval.naks_received);
    output.usSndDuration = micros(interval.send_busy);
    output.pktSndDrop = count(interval.packets_send_dropped);
    output.pktRcvDrop = count(interval.packets_receive_dropped);
    output.pktRcvUndecrypt = count(interval.packets_undecrypted);
    output.byteSent = interval.bytes_sent;
    output.byteRecv = interval.bytes_received;
    output.byteRcvLoss = interval.bytes_receive_lost;
    output.byteRetrans = interval.bytes_retransmitted;
    output.byteSndDrop = interval.bytes_send_dropped;
    output.byteRcvDrop = interval.bytes_receive_dropped;
    output.byteRcvUndecrypt = interval.bytes_undecrypted;
    output.pktSndFilterExtra = count(interval.packets_send_filter_extra);
    output.pktRcvFilterExtra = count(interval.packets_receive_filter_extra);
    output.pktRcvFilterSupply = count(interval.packets_filter_supplied);
    output.pktRcvFilterLoss = count(interval.packets_filter_lost);
    output.pktSentUnique = long(interval.packets_sent_unique);
    output.pktRecvUnique = long(interval.packets_received_unique);
    output.byteSentUnique = interval.bytes_sent_unique;
    output.byteRecvUnique = interval.bytes_received_unique;
    output.pktRcvRetrans = count(interval.packets_received_retransmitted);
    output.pktRcvBelated = long(interval.packets_belated);
    output.mbpsSendRate = interval.send_rate().as_mbps();
    output.mbpsRecvRate = interval.receive_rate().as_mbps();
}

/// Sets the values that hold at present.
fn set_present(output: &mut TraceStatistics, present: &Statistics) {
    output.pktReorderDistance = count(present.reorder_distance.into());
    output.pktRcvAvgBelatedTime = float_millis(present.belated_time);
    output.usPktSndPeriod = present.send_period.as_secs_f64() * 1e6;
    output.pktFlowWindow = count(present.flow_window.into());
    output.pktCongestionWindow = count(present.congestion_window.into());
    output.pktFlightSize = count(present.flight_size.into());
    output.msRTT = float_millis(present.rtt);
    output.mbpsBandwidth = present.link_capacity.as_mbps();
    output.byteAvailSndBuf = count(present.send_buffer_available);
    output.byteAvailRcvBuf = count(present.receive_buffer_available);
    output.mbpsMaxBW = present.max_bandwidth.as_mbps();
    output.byteMSS = count(present.mss.into());
    output.pktSndBuf = count(present.send_buffer_packets.into());
    output.byteSndBuf = with_headers(output.pktSndBuf, count(present.send_buffer_bytes));
    output.msSndBuf = millis(present.send_buffer_span);
    output.msSndTsbPdDelay = millis(present.peer_latency);
    output.pktRcvBuf = count(present.receive_buffer_packets.into());
    output.byteRcvBuf = count(present.receive_buffer_bytes);
    output.msRcvBuf = millis(present.receive_buffer_span);
    output.msRcvTsbPdDelay = millis(present.receive_latency);
    output.pktReorderTolerance = count(present.reorder_tolerance.into());
}

/// Sets the contents of the buffers to their means.
fn set_means(output: &mut TraceStatistics, means: &BufferLevels) {
    let BufferLevels { send, receive } = means;
    let present = output.pktSndBuf;
    output.pktSndBuf = rounded(send.packets);
    // libsrt counts the room of the send buffer by the mean, and that of the receive buffer does
    // not depend on it.
    let more = output.pktSndBuf.saturating_sub(present).saturating_mul(output.byteMSS);
    output.byteAvailSndBuf = output.byteAvailSndBuf.saturating_sub(more).max(0);
    output.byteSndBuf = with_headers(output.pktSndBuf, rounded(send.bytes));
    output.msSndBuf = rounded(send.millis);
    output.pktRcvBuf = rounded(receive.packets);
    output.byteRcvBuf = rounded(receive.bytes);
    output.msRcvBuf = rounded(receive.millis);
}

/// A mean as libsrt shows it.
fn rounded(mean: f64) -> c_int {
    #[expect(clippy::cast_possible_truncation, reason = "a larger one stops at the largest")]
    let rounded = mean.round() as c_int;
    rounded
}

/// The bytes of the packets in the send buffer, with the headers that libsrt counts.
const fn with_headers(packets: c_int, payload: c_int) -> c_int {
    payload.saturating_add(packets.saturating_mul(HEADERS))
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use punctual_sockets::BufferLevel;

    use super::*;

    #[test]
    fn the_layout_is_that_of_the_header() {
        assert_eq!(size_of::<TraceStatistics>(), 496);
        assert_eq!(offset_of!(TraceStatistics, usSndDurationTotal), 56);
        assert_eq!(offset_of!(TraceStatistics, mbpsSendRate), 184);
        assert_eq!(offset_of!(TraceStatistics, usPktSndPeriod), 304);
        assert_eq!(offset_of!(TraceStatistics, pktReorderTolerance), 428);
        assert_eq!(offset_of!(TraceStatistics, byteRecvUnique), 488);
    }

    #[test]
    fn a_count_that_does_not_fit_stops_at_the_largest() {
        let total = Statistics::default();
        assert_eq!(count(u64::MAX), c_int::MAX);
        let statistics = TransferStatistics { total, ..TransferStatistics::default() };
        let mut output = std::mem::MaybeUninit::uninit();
        // SAFETY: the structure can be written, and is set then.
        let output = unsafe {
            assert!(write(convert(&statistics), std::ptr::null_mut()).is_err());
            write(convert(&statistics), output.as_mut_ptr()).unwrap();
            output.assume_init_ref()
        };
        assert_eq!(output.pktSentTotal, 0);
    }

    #[test]
    fn means_take_the_place_of_the_present_buffers_and_are_rounded() {
        let mut output =
            TraceStatistics { pktSndBuf: 9, byteRcvBuf: 9, ..convert(&<_>::default()) };
        let send = BufferLevel { packets: 1.5, bytes: 100.4, millis: 7.6 };
        let receive = BufferLevel { packets: 0.4, bytes: 1e12, millis: 0.0 };
        set_means(&mut output, &BufferLevels { send, receive });
        assert_eq!((output.pktSndBuf, output.byteSndBuf, output.msSndBuf), (2, 188, 8));
        assert_eq!((output.pktRcvBuf, output.byteRcvBuf, output.msRcvBuf), (0, c_int::MAX, 0));
    }

    #[test]
    fn the_room_of_the_send_buffer_is_that_beside_its_mean() {
        let room = |present, mean| {
            let mut output = TraceStatistics {
                pktSndBuf: present,
                byteAvailSndBuf: (10 - present) * 1_500,
                byteMSS: 1_500,
                ..convert(&<_>::default())
            };
            let send = BufferLevel { packets: mean, ..BufferLevel::default() };
            set_means(&mut output, &BufferLevels { send, ..BufferLevels::default() });
            output.byteAvailSndBuf
        };
        assert_eq!((room(0, 4.4), room(10, 4.4), room(4, 4.4)), (9_000, 9_000, 9_000));
        // The buffer has become smaller meanwhile.
        assert_eq!(room(0, 12.), 0);
    }
}
