//! The addresses of a name, and the race of calls to them.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::{Instant, sleep_until};

use crate::failure::Failure;

/// The addresses of `host` in the order in which they are called: the system's order, which knows
/// the addresses and routes that this machine has (RFC 6724), with the families of IP in turn (RFC
/// 8305 section 4).
pub(crate) async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let found = lookup_host((host, port)).await.map_err(|error| {
        Failure::runtime(format!("cannot find the address of `{host}`: {error}"))
    })?;
    let found = in_turn(found.collect());
    if found.is_empty() {
        return Err(Failure::runtime(format!("`{host}` has no address")));
    }
    Ok(found)
}

/// The same addresses, begun at the one whose turn it is in this try: for ends that have one
/// address at a time, or cannot know whether somebody is there.
pub(crate) fn from_turn(mut all: Vec<SocketAddr>, turn: usize) -> Vec<SocketAddr> {
    let turn = turn % all.len().max(1);
    all.rotate_left(turn);
    all
}

/// The same addresses without repetitions, those of the two families in turn.
fn in_turn(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    let starts_with_v6 = all.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|address| address.is_ipv6() == starts_with_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let pairs = std::iter::from_fn(move || match (first.next(), second.next()) {
        (None, None) => None,
        pair => Some(pair),
    });
    pairs.flat_map(|(one, other)| one.into_iter().chain(other)).collect()
}

/// Calls one address after the other, a [`STAGGER`] after the last or as soon as a call fails,
/// until one answers, and drops the other calls (RFC 8305 section 5).
///
/// # Errors
///
/// No address answered: the failure that says most, of those of all calls.
pub(crate) async fn first_to_answer<T, W: Future<Output = Result<T, Failure>>>(
    addresses: &[SocketAddr],
    call: impl Fn(SocketAddr) -> W,
) -> Result<T, Failure> {
    let mut waiting = addresses.iter();
    let mut calls: Vec<Pin<Box<W>>> = Vec::new();
    let mut failures = Vec::new();
    let mut next = Instant::now();
    loop {
        if (calls.is_empty() || next <= Instant::now())
            && let Some(address) = waiting.next()
        {
            calls.push(Box::pin(call(*address)));
            next = Instant::now() + STAGGER;
        }
        if calls.is_empty() {
            return Err(most_telling(failures, addresses));
        }
        tokio::select! {
            ended = any(&mut calls) => match ended {
                Ok(answered) => return Ok(answered),
                Err(failure) => {
                    failures.push(failure);
                    next = Instant::now();
                }
            },
            () = sleep_until(next), if !waiting.as_slice().is_empty() => {}
        }
    }
}

/// The result of the first of `calls` that ends, which is removed.
async fn any<W: Future>(calls: &mut Vec<Pin<Box<W>>>) -> W::Output {
    std::future::poll_fn(|context| {
        for place in 0..calls.len() {
            if let Poll::Ready(ended) = calls[place].as_mut().poll(context) {
                drop(calls.remove(place));
                return Poll::Ready(ended);
            }
        }
        Poll::Pending
    })
    .await
}

/// The failure that says most, with the addresses if there were several: a refusal, or else
/// silence, or else an address that cannot be called from here.
fn most_telling(failures: Vec<Failure>, addresses: &[SocketAddr]) -> Failure {
    let weight = |failure: &Failure| match failure {
        refused if refused.refusal().is_some() => 3,
        silent if silent.is_no_answer() => 2,
        wrong if wrong.is_usage() => 0,
        _ => 1,
    };
    // Of several with the same weight, the first one.
    let most = failures.into_iter().rev().max_by_key(weight);
    let failure = most.unwrap_or_else(|| Failure::runtime("there is no address to call"));
    match addresses {
        [_, _, ..] => {
            let names: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            failure.with_advice(&format!("called {}", names.join(" and ")))
        }
        _ => failure,
    }
}

/// The time from one call to the next while none has ended (RFC 8305 section 8).
const STAGGER: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use punctual::{CloseReason, RejectReason};
    use tokio::time::sleep;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(3);

    fn all(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    }

    /// Calls `addresses`, where calls over IPv4 end as `v4` says and calls over IPv6 as `v6` says;
    /// gives the result, the time that it took, and the time of each call.
    async fn race(
        addresses: &[SocketAddr],
        v4: impl Fn() -> (Duration, Result<(), Failure>),
        v6: impl Fn() -> (Duration, Result<(), Failure>),
    ) -> (Result<SocketAddr, Failure>, Duration, Vec<Duration>) {
        let (start, begun) = (Instant::now(), Mutex::new(Vec::new()));
        let result = first_to_answer(addresses, |address| {
            begun.lock().expect("it is not poisoned").push(start.elapsed());
            let (time, result) = if address.is_ipv4() { v4() } else { v6() };
            async move {
                sleep(time).await;
                result.map(|()| address)
            }
        })
        .await;
        (result, start.elapsed(), begun.into_inner().expect("it is not poisoned"))
    }

    fn silent() -> (Duration, Result<(), Failure>) {
        (TIMEOUT, Err(CloseReason::ConnectTimeout(TIMEOUT).into()))
    }

    #[test]
    fn families_take_turns_in_the_systems_order() {
        let found = all(&["[::1]:9", "[::2]:9", "[::1]:9", "1.1.1.1:9", "1.1.1.2:9", "1.1.1.3:9"]);
        let order = all(&["[::1]:9", "1.1.1.1:9", "[::2]:9", "1.1.1.2:9", "1.1.1.3:9"]);
        assert_eq!(in_turn(found), order);
        assert_eq!(in_turn(all(&["1.1.1.1:9", "[::1]:9"])), all(&["1.1.1.1:9", "[::1]:9"]));
    }

    #[test]
    fn each_try_begins_at_the_next_address() {
        let both = all(&["1.1.1.1:9", "[::1]:9"]);
        let first = |turn| from_turn(both.clone(), turn)[0];
        assert_eq!([0, 1, 2].map(first), [both[0], both[1], both[0]]);
    }

    #[tokio::test]
    async fn an_address_is_its_own_only_address() {
        assert_eq!(addresses("127.0.0.1", 42).await.expect("one"), all(&["127.0.0.1:42"]));
        assert_eq!(addresses("::1", 42).await.expect("one"), all(&["[::1]:42"]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_address_is_called_250_ms_after_one_that_is_silent() {
        let answers = || (Duration::from_millis(20), Ok(()));
        for names in [["[::1]:9", "1.1.1.1:9"], ["1.1.1.1:9", "[::1]:9"]] {
            let names = all(&names);
            let (v4, v6) = (names[1].is_ipv4(), names[1].is_ipv6());
            let pick = |is_there: bool| move || if is_there { answers() } else { silent() };
            let (result, time, begun) = race(&names, pick(v4), pick(v6)).await;
            assert_eq!(result.expect("an answer"), names[1]);
            assert_eq!((time.as_millis(), begun.len()), (270, 2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_address_alone_is_called_if_it_answers_soon() {
        let names = all(&["[::1]:9", "1.1.1.1:9"]);
        let answers = || (Duration::from_millis(200), Ok(()));
        let (result, _, begun) = race(&names, answers, answers).await;
        assert_eq!(result.expect("an answer"), names[0]);
        assert_eq!(begun.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_fails_at_once_delays_no_other() {
        let names = all(&["[::1]:9", "1.1.1.1:9", "1.1.1.2:9"]);
        let unreachable = || (Duration::ZERO, Err(Failure::runtime("network is unreachable")));
        let (result, time, begun) = race(&names, silent, unreachable).await;
        let failure = result.expect_err("nobody answers");
        assert!(failure.is_no_answer(), "{failure}");
        assert!(failure.to_string().contains("called [::1]:9 and 1.1.1.1:9 and 1.1.1.2:9"));
        assert_eq!(begun[1], Duration::ZERO);
        assert_eq!(time, STAGGER + TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_says_more_than_silence() {
        let names = all(&["1.1.1.1:9", "[::1]:9"]);
        let refused = || {
            let reason = CloseReason::Rejected(RejectReason::BAD_SECRET);
            (Duration::from_millis(50), Err(reason.into()))
        };
        let (result, ..) = race(&names, silent, refused).await;
        assert!(result.expect_err("nobody answers").refusal().is_some());
    }
}
