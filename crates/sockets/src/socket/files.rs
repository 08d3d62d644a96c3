//! Sending and receiving files.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use bytes::buf::UninitSlice;
use punctual::{PeerError, Transmission};

use super::Socket;
use super::control::MessageControl;
use crate::code::{Code, Failure};

/// Files over the connection of a socket. They wait, whatever the options of the socket say.
#[derive(Debug)]
pub(crate) struct Files<'a>(pub(super) &'a Socket);

impl Files<'_> {
    /// Sends `size` bytes of the file at `path` from `offset` on, in blocks of `block` bytes; all
    /// bytes up to the end of the file if `size` is negative. It waits for room whatever the
    /// options say. Returns the number of bytes, and moves `offset` behind them.
    pub(crate) fn send(
        &self,
        path: &Path,
        offset: &mut i64,
        size: i64,
        block: usize,
    ) -> Result<i64, Failure> {
        self.check_stream()?;
        let mut file =
            File::open(path).map_err(|error| Failure::of_system(Code::ReadPermission, &error))?;
        let start = u64::try_from(*offset).map_err(|_| Code::ReadOffset)?;
        file.seek(SeekFrom::Start(start))
            .map_err(|error| Failure::of_system(Code::ReadOffset, &error))?;
        let mut left = u64::try_from(size).unwrap_or(u64::MAX);
        let mut buffer = vec![0; block];
        let mut sent = 0;
        while left > 0 {
            let most = usize::try_from(left).map_or(block, |left| left.min(block));
            let read = file.read(&mut buffer[..most]);
            let read = read.map_err(|error| Failure::of_system(Code::ReadPermission, &error))?;
            if read == 0 {
                break;
            }
            self.send_all(&buffer[..read])?;
            left -= read as u64;
            sent += i64::try_from(read).unwrap_or(0);
            *offset += i64::try_from(read).unwrap_or(0);
        }
        Ok(sent)
    }

    fn send_all(&self, mut data: &[u8]) -> Result<(), Failure> {
        while !data.is_empty() {
            let mark = self.0.readiness().mark();
            match self.0.send(data, &mut MessageControl::default()) {
                Ok(sent) => data = &data[sent..],
                Err(failure) if may_repeat(failure.code) => {
                    self.0.readiness().wait(mark, None);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Receives `size` bytes into the file at `path`, which is made or emptied, from `offset` on,
    /// in blocks of `block` bytes. It waits for data whatever the options say, and ends early with
    /// the stream. Returns the number of bytes, and moves `offset` behind them. If the file cannot
    /// be written, the peer is told.
    pub(crate) fn receive(
        &self,
        path: &Path,
        offset: &mut i64,
        size: i64,
        block: usize,
    ) -> Result<i64, Failure> {
        self.check_stream()?;
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(|error| Failure::of_system(Code::ReadOffset, &error))?;
        let start = u64::try_from(*offset).map_err(|_| Code::WriteOffset)?;
        file.seek(SeekFrom::Start(start))
            .map_err(|error| Failure::of_system(Code::WriteOffset, &error))?;
        let mut left = u64::try_from(size).unwrap_or(0);
        let mut buffer = vec![0; block];
        let mut received = 0;
        while left > 0 {
            let most = usize::try_from(left).map_or(block, |left| left.min(block));
            let read = self.receive_waiting(&mut buffer[..most])?;
            if read == 0 {
                break;
            }
            if let Err(error) = file.write_all(&buffer[..read]) {
                self.tell_error();
                return Err(Failure::of_system(Code::WritePermission, &error));
            }
            left -= read as u64;
            received += i64::try_from(read).unwrap_or(0);
            *offset += i64::try_from(read).unwrap_or(0);
        }
        Ok(received)
    }

    fn receive_waiting(&self, buffer: &mut [u8]) -> Result<usize, Failure> {
        loop {
            let mark = self.0.readiness().mark();
            let buffer = UninitSlice::new(buffer);
            match self.0.receive(buffer, &mut MessageControl::default()) {
                Err(failure) if may_repeat(failure.code) => {
                    self.0.readiness().wait(mark, None);
                }
                done => return done,
            }
        }
    }

    fn tell_error(&self) {
        if let Some(connection) = self.0.core.link().and_then(super::link::Link::connection) {
            connection.tell_error(PeerError::FILE);
        }
    }

    /// Fails if the socket carries live messages, which files are not.
    fn check_stream(&self) -> Result<(), Failure> {
        let link = self.0.core.connected()?;
        match link.mode {
            Transmission::Live => Err(Code::InvalidBufferCall.into()),
            Transmission::Messages | Transmission::Stream => Ok(()),
        }
    }
}

/// Files wait, whatever the options of the socket say.
fn may_repeat(code: Code) -> bool {
    matches!(code, Code::AgainSend | Code::AgainReceive | Code::Timeout)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use crate::testing::{assert_fails, pair};
    use crate::{Code, Library, OptionNumber};

    /// A path that no other test uses.
    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("punctual-files-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_part_of_a_file_arrives_in_a_file() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[(OptionNumber::TRANSTYPE, 1)]);
        let (source, target) = (path("source"), path("target"));
        let bytes: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
        fs::write(&source, &bytes).unwrap();
        let (mut read, mut written) = (1_000, 0);
        std::thread::scope(|scope| {
            let sending = scope
                .spawn(|| library.send_file(ends.caller, &source, &mut read, -1, 10_000).unwrap());
            let got = library.receive_file(ends.accepted, &target, &mut written, 199_000, 7_777);
            assert_eq!((sending.join().unwrap(), got.unwrap()), (199_000, 199_000));
        });
        assert_eq!((read, written), (200_000, 199_000));
        assert!(fs::read(&target).unwrap() == bytes[1_000..]);
        [source, target].iter().for_each(|path| fs::remove_file(path).unwrap());
        library.shut_down();
    }

    #[test]
    fn a_file_ends_early_with_its_stream() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[(OptionNumber::TRANSTYPE, 1)]);
        crate::testing::send(&library, ends.caller, b"all there is");
        library.close(ends.caller);
        let target = path("short");
        let mut written = 0;
        let got = library.receive_file(ends.accepted, &target, &mut written, 1_000_000, 1_000);
        assert_eq!((got.unwrap(), written), (12, 12));
        assert_eq!(fs::read(&target).unwrap(), b"all there is");
        fs::remove_file(target).unwrap();
        library.shut_down();
    }

    #[test]
    fn bad_files_and_live_sockets_are_refused() {
        let library = Library::start().unwrap();
        let nowhere = PathBuf::from("/nowhere/at/all");
        let send = |id, offset: i64| library.send_file(id, &nowhere, &mut { offset }, -1, 1_000);
        let live = pair(&library, &[]);
        assert_fails(send(live.caller, 0), Code::InvalidBufferCall);
        let stream = pair(&library, &[(OptionNumber::TRANSTYPE, 1)]);
        assert_fails(send(stream.caller, 0), Code::ReadPermission);
        assert_fails(send(library.create_socket(), 0), Code::NotConnected);
        let empty = path("empty");
        fs::write(&empty, "").unwrap();
        let sent = library.send_file(stream.caller, &empty, &mut -1, -1, 1_000);
        assert_fails(sent, Code::ReadOffset);
        fs::remove_file(empty).unwrap();
        library.shut_down();
    }
}
