//! The readiness of a socket: to be read, and to take more to send.

pub(super) use imp::Readiness;
pub use imp::Room;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod imp {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::task::{Context, Poll};

    use rustix::event::epoll;
    use socket2::{SockRef, Socket};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use crate::descriptors::{Descriptors, Share};
    use crate::registration::register;
    use crate::udp::Batch;

    static WATCHES: Descriptors = Descriptors::new();

    /// A socket, and the way in which the reactor reports its datagrams.
    #[derive(Debug)]
    pub(in crate::udp) enum Readiness {
        /// The reactor watches the socket.
        Always(AsyncFd<OwnedFd>),
        /// The reactor watches an epoll descriptor that holds nothing but the socket. There the
        /// watch can be paused, for which tokio has no call.
        Pausable {
            /// The socket.
            socket: OwnedFd,
            /// The epoll descriptor.
            watch: AsyncFd<OwnedFd>,
            /// The right to it.
            _share: Share,
        },
    }

    impl Readiness {
        pub(in crate::udp) fn always(socket: Socket) -> io::Result<Self> {
            register(socket.into(), Interest::READABLE).map(Self::Always)
        }

        /// A socket whose watch can be paused; of many sockets, the first ones. While another one
        /// is not read, its reactor wakes the task once for all datagrams that come.
        pub(in crate::udp) fn pausable(socket: Socket) -> io::Result<Self> {
            let Some(share) = WATCHES.share() else { return Self::always(socket) };
            let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            epoll::add(&watch, &socket, DATA, epoll::EventFlags::IN)?;
            let watch = register(watch, Interest::READABLE)?;
            Ok(Self::Pausable { socket: socket.into(), watch, _share: share })
        }

        pub(in crate::udp) fn socket(&self) -> SockRef<'_> {
            match self {
                Self::Always(registered) => SockRef::from(registered.get_ref()),
                Self::Pausable { socket, .. } => SockRef::from(socket),
            }
        }

        pub(in crate::udp) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
            // An error means that the runtime shuts down and will drop the task.
            self.registered().poll_read_ready(cx).map(drop)
        }

        /// Reads by `read`, and notes if that emptied the socket.
        pub(in crate::udp) fn read(
            &self,
            cx: &mut Context<'_>,
            read: impl FnOnce() -> Batch,
        ) -> Batch {
            // Asked for before reading: what comes after that is not forgotten by clearing.
            let ready = match self.registered().poll_read_ready(cx) {
                Poll::Ready(Ok(ready)) => Some(ready),
                Poll::Ready(Err(_)) | Poll::Pending => None,
            };
            let batch = read();
            if let Some(mut ready) = ready.filter(|_| batch.drained) {
                ready.clear_ready();
            }
            batch
        }

        /// Sets whether the reactor reports datagrams from now on. When it is turned on, it also
        /// reports datagrams that are there already.
        pub(in crate::udp) fn set_watched(&self, watched: bool) {
            let Self::Pausable { socket, watch, .. } = self else { return };
            let watch = watch.get_ref();
            // Changing its events would not do: the kernel keeps a socket that was ready in the
            // list of those to look at, and tells nobody when it is ready again.
            let changed = match watched {
                true => epoll::add(watch, socket, DATA, epoll::EventFlags::IN),
                false => epoll::delete(watch, socket),
            };
            if let Err(error) = changed {
                tracing::error!(%error, "a socket's watch cannot be changed");
            }
        }

        pub(in crate::udp) fn room(&self) -> io::Result<Room> {
            // The reactor has one registration for each descriptor.
            let socket = self.as_fd().try_clone_to_owned()?;
            register(socket, Interest::WRITABLE).map(Room)
        }

        fn registered(&self) -> &AsyncFd<OwnedFd> {
            match self {
                Self::Always(registered) => registered,
                Self::Pausable { watch, .. } => watch,
            }
        }
    }

    impl AsFd for Readiness {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self {
                Self::Always(registered) => registered.get_ref().as_fd(),
                Self::Pausable { socket, .. } => socket.as_fd(),
            }
        }
    }

    /// The watch for room to send of a socket that had none. Dropped, it ends.
    #[derive(Debug)]
    pub struct Room(AsyncFd<OwnedFd>);

    impl Room {
        /// Ready if there may be room now; else the task is woken when there is.
        pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
            self.0.poll_write_ready(cx).map(drop)
        }
    }

    /// There is only one socket, so its events need no name.
    const DATA: epoll::EventData = epoll::EventData::new_u64(0);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod imp {
    use std::io;
    use std::sync::Arc;
    use std::task::{Context, Poll};

    use socket2::{SockRef, Socket};
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    use crate::udp::Batch;

    /// A socket whose datagrams the reactor always reports.
    #[derive(Debug)]
    pub(in crate::udp) struct Readiness(Arc<UdpSocket>);

    impl Readiness {
        pub(in crate::udp) fn always(socket: Socket) -> io::Result<Self> {
            Ok(Self(Arc::new(UdpSocket::from_std(socket.into())?)))
        }

        pub(in crate::udp) fn pausable(socket: Socket) -> io::Result<Self> {
            Self::always(socket)
        }

        pub(in crate::udp) fn socket(&self) -> SockRef<'_> {
            SockRef::from(&*self.0)
        }

        pub(in crate::udp) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
            self.0.poll_recv_ready(cx).map(drop)
        }

        pub(in crate::udp) fn read(
            &self,
            _cx: &mut Context<'_>,
            read: impl FnOnce() -> Batch,
        ) -> Batch {
            let mut batch = Batch { received: 0, drained: true };
            let emptied = self.0.try_io(Interest::READABLE, || {
                batch = read();
                if batch.drained { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            drop(emptied);
            batch
        }

        pub(in crate::udp) fn set_watched(&self, _watched: bool) {}

        pub(in crate::udp) fn room(&self) -> io::Result<Room> {
            Ok(Room(Arc::clone(&self.0)))
        }
    }

    /// The watch for room to send of a socket that had none.
    #[derive(Debug)]
    pub struct Room(Arc<UdpSocket>);

    impl Room {
        /// Ready if there may be room now; else the task is woken when there is.
        pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
            self.0.poll_send_ready(cx).map(drop)
        }
    }
}
