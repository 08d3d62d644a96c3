//! Datagrams of an application on their way out, many at a time.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;

use super::UdpSocket;

/// Puts datagrams of one size side by side, so that one call sends them.
#[derive(Debug, Default)]
pub struct SendBatch {
    contents: Vec<u8>,
}

impl SendBatch {
    /// Sends `datagrams` to `remote`, or to the peer of a connected socket, and waits while the
    /// socket has no room. `refused` gets the errors of datagrams that the system refuses, such as
    /// one that is too large; they are left out.
    ///
    /// Not cancel safe: dropped before it completes, it has sent a part.
    ///
    /// # Errors
    ///
    /// The system cannot tell when there is room.
    pub async fn send(
        &mut self,
        socket: &UdpSocket,
        remote: Option<SocketAddr>,
        mut datagrams: &[Bytes],
        mut refused: impl FnMut(io::Error),
    ) -> io::Result<()> {
        while let [first, ..] = datagrams {
            let (run, rest) = datagrams.split_at(run(datagrams, socket.max_segments()));
            datagrams = rest;
            if let [only] = run {
                send_run(socket, remote, only, only.len(), &mut refused).await?;
                continue;
            }
            self.contents.clear();
            run.iter().for_each(|datagram| self.contents.extend_from_slice(datagram));
            send_run(socket, remote, &self.contents, first.len(), &mut refused).await?;
        }
        Ok(())
    }
}

async fn send_run(
    socket: &UdpSocket,
    remote: Option<SocketAddr>,
    mut contents: &[u8],
    size: usize,
    refused: &mut impl FnMut(io::Error),
) -> io::Result<()> {
    loop {
        let sent = match socket.send(remote, contents, size, None) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let room = socket.room()?;
                poll_fn(|cx| room.poll(cx)).await;
                continue;
            }
            Err(error) => {
                refused(error);
                size.min(contents.len())
            }
        };
        contents = &contents[sent..];
        if contents.is_empty() {
            return Ok(());
        }
    }
}

/// The number of `datagrams` that go out in one call: all of the first one's size, and a shorter
/// one behind them.
fn run(datagrams: &[Bytes], most: usize) -> usize {
    let size = datagrams[0].len();
    let most = (LARGEST_RUN / size.max(1)).min(most).max(1);
    let same = datagrams.iter().take(most).take_while(|it| it.len() == size).count();
    let shorter = datagrams.get(same).is_some_and(|it| (1..size).contains(&it.len()));
    if same < most && shorter { same + 1 } else { same }
}

/// Bytes of a run at most: what the system cuts from one UDP packet.
const LARGEST_RUN: usize = 65_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::tests::{bound, received};

    #[test]
    fn a_run_is_of_one_size_and_may_end_with_a_shorter_datagram() {
        let of = |sizes: &[usize]| -> Vec<Bytes> {
            sizes.iter().map(|&size| Bytes::from(vec![0; size])).collect()
        };
        assert_eq!(run(&of(&[10, 10, 10]), 64), 3);
        assert_eq!(run(&of(&[10, 10, 4, 10]), 64), 3);
        assert_eq!(run(&of(&[10, 10, 11]), 64), 2);
        assert_eq!(run(&of(&[10, 10, 0]), 64), 2, "an empty datagram cannot be cut off");
        assert_eq!(run(&of(&[10, 10, 4]), 2), 2);
        assert_eq!(run(&of(&[40_000, 40_000]), 64), 1);
        assert_eq!(run(&of(&[0, 0]), 64), 2);
    }

    #[tokio::test]
    async fn datagrams_keep_their_boundaries_and_order() {
        let (from, to) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
        let sizes = [1_316, 1_316, 1_316, 188, 188, 1_316, 1, 1_316, 60_000, 1];
        let datagrams: Vec<Bytes> =
            (0_u8..).zip(sizes).map(|(number, size)| Bytes::from(vec![number; size])).collect();
        let mut buffer = SendBatch::default();
        buffer
            .send(&from, Some(to.local_addr()), &datagrams, |error| panic!("{error}"))
            .await
            .unwrap();
        assert_eq!(received(&to, sizes.len()).await, datagrams);
    }

    #[tokio::test]
    async fn a_datagram_that_is_refused_holds_up_no_other() {
        let (from, to) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
        let datagrams = [70_000, 10].map(|size| Bytes::from(vec![1; size]));
        let mut refusals = 0;
        SendBatch::default()
            .send(&from, Some(to.local_addr()), &datagrams, |_| refusals += 1)
            .await
            .unwrap();
        assert_eq!(refusals, 1);
        assert_eq!(received(&to, 1).await, datagrams[1..]);
    }

    #[tokio::test]
    async fn a_socket_with_room_is_not_waited_for() {
        let socket = bound("127.0.0.1:0");
        for _ in 0..3 {
            let room = socket.room().unwrap();
            poll_fn(|cx| room.poll(cx)).await;
        }
    }
}
