//! A handshake without cryptography, for simulated networks alone.
//!
//! TLS draws keys from the system's random numbers and takes real time, so that no two runs of it
//! are the same bytes. This handshake has the same flights, negotiates the protocol and carries the
//! transport parameters of QUIC, and its packets have a checksum of the length of TLS's tag.
//! **Everyone can read and forge them.** It does not understand TLS, nor does TLS understand it:
//! an end that uses it by mistake over a network connects to no other program.

use std::any::Any;
use std::hash::Hasher;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use siphasher::sip128::{Hasher128, SipHasher13};

use super::Protocol;

/// Bytes of the checksum of a packet, as of a tag of AES-GCM.
const TAG: usize = 16;
/// The alert `no_application_protocol` of TLS.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The handshake of a client in a simulated network, which offers these protocols.
#[derive(Clone, Debug)]
pub struct InsecureSimulatedClient(pub Vec<Protocol>);

/// The handshake of a server in a simulated network, which speaks these protocols.
#[derive(Clone, Debug)]
pub struct InsecureSimulatedServer(pub Vec<Protocol>);

impl crypto::ClientConfig for InsecureSimulatedClient {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let mut hello = vec![u8::try_from(self.0.len()).unwrap_or(u8::MAX)];
        for protocol in self.0.iter().take(u8::MAX.into()) {
            hello.push(u8::try_from(protocol.name().len()).unwrap_or(u8::MAX));
            hello.extend_from_slice(protocol.name().as_bytes());
        }
        params.write(&mut hello);
        Ok(Box::new(SimulatedSession::new(Side::Client, Step::SendHello(hello), Vec::new())))
    }
}

impl crypto::ServerConfig for InsecureSimulatedServer {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        checksum(0, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        let mut own = Vec::new();
        params.write(&mut own);
        let mut session = SimulatedSession::new(Side::Server, Step::AwaitHello, own);
        session.spoken.clone_from(&self.0);
        Box::new(session)
    }
}

/// The next step of a handshake. A client sends its hello, gets an answer that brings the keys of
/// the handshake, then the server's finish, and sends its own.
#[derive(Debug)]
enum Step {
    /// The client is to send its hello.
    SendHello(Vec<u8>),
    /// The server waits for the hello.
    AwaitHello,
    /// The server is to answer the hello.
    SendAnswer,
    /// The client waits for the answer.
    AwaitAnswer,
    /// The client takes the keys of the handshake into use.
    TakeHandshakeKeys,
    /// The end waits for the other's finish.
    AwaitFinish,
    /// The end is to send its finish.
    SendFinish,
    /// The handshake is complete.
    Done,
}

#[derive(Debug)]
struct SimulatedSession {
    side: Side,
    step: Step,
    /// The own transport parameters, of a server.
    own: Vec<u8>,
    /// The protocols that a server speaks.
    spoken: Vec<Protocol>,
    protocol: Option<Protocol>,
    peer: Option<TransportParameters>,
    /// Bytes of a message that is not yet complete.
    partial: Vec<u8>,
}

impl SimulatedSession {
    fn new(side: Side, step: Step, own: Vec<u8>) -> Self {
        let (spoken, partial) = (Vec::new(), Vec::new());
        Self { side, step, own, spoken, protocol: None, peer: None, partial }
    }

    /// Takes in one message. Returns whether the handshake data are ready.
    fn handle(&mut self, message: &[u8]) -> Result<bool, TransportError> {
        match self.step {
            Step::AwaitHello => {
                let mut rest = message;
                let mut offered = Vec::new();
                for _ in 0..take(&mut rest, 1)?[0] {
                    let length = take(&mut rest, 1)?[0];
                    offered.push(take(&mut rest, length.into())?);
                }
                let mut found = offered.into_iter().filter_map(Protocol::from_name);
                let Some(protocol) = found.find(|offer| self.spoken.contains(offer)) else {
                    let code = TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL);
                    return Err(TransportError { code, frame: None, reason: String::new() });
                };
                self.protocol = Some(protocol);
                self.peer = Some(TransportParameters::read(self.side, &mut rest)?);
                self.step = Step::SendAnswer;
                Ok(true)
            }
            Step::AwaitAnswer => {
                self.step = Step::TakeHandshakeKeys;
                Ok(false)
            }
            Step::AwaitFinish if self.side.is_client() => {
                let mut rest = message;
                let length = take(&mut rest, 1)?[0];
                self.protocol = Protocol::from_name(take(&mut rest, length.into())?);
                self.peer = Some(TransportParameters::read(self.side, &mut rest)?);
                self.step = Step::SendFinish;
                Ok(true)
            }
            Step::AwaitFinish => {
                self.step = Step::Done;
                Ok(false)
            }
            _ => Err(violation("a message out of order")),
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], TransportError> {
    let (taken, left) =
        rest.split_at_checked(length).ok_or_else(|| violation("a message that is too short"))?;
    *rest = left;
    Ok(taken)
}

/// The error for a handshake that breaks the rules.
fn violation(reason: &str) -> TransportError {
    let code = TransportErrorCode::PROTOCOL_VIOLATION;
    TransportError { code, frame: None, reason: reason.to_owned() }
}

impl Session for SimulatedSession {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let protocol = Some(self.protocol?.name().as_bytes().to_vec());
        Some(Box::new(HandshakeData { protocol, server_name: None }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        !matches!(self.step, Step::Done)
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.partial.extend_from_slice(buf);
        let mut is_ready = false;
        while let Some((length, rest)) = self.partial.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if rest.len() < length {
                break;
            }
            let message: Vec<u8> = self.partial.drain(..2 + length).skip(2).collect();
            is_ready |= self.handle(&message)?;
        }
        Ok(is_ready)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let send = |buf: &mut Vec<u8>, message: &[u8]| {
            let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
            buf.extend_from_slice(&length.to_be_bytes());
            buf.extend_from_slice(message);
        };
        match &self.step {
            Step::SendHello(hello) => {
                send(buf, hello);
                self.step = Step::AwaitAnswer;
                None
            }
            Step::SendAnswer => {
                send(buf, &[]);
                self.step = Step::SendFinish;
                Some(keys())
            }
            Step::TakeHandshakeKeys => {
                self.step = Step::AwaitFinish;
                Some(keys())
            }
            Step::SendFinish => {
                let name = self.protocol.map_or("", Protocol::name);
                let mut finish = vec![u8::try_from(name.len()).unwrap_or(u8::MAX)];
                finish.extend_from_slice(name.as_bytes());
                finish.extend_from_slice(&self.own);
                send(buf, &finish);
                self.step = if self.side.is_client() { Step::Done } else { Step::AwaitFinish };
                Some(keys())
            }
            Step::AwaitHello | Step::AwaitAnswer | Step::AwaitFinish | Step::Done => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(KeyPair { local: Box::new(ChecksumOnly), remote: Box::new(ChecksumOnly) })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((rest, tag)) = payload.split_last_chunk::<TAG>() else { return false };
        checksum(0, orig_dst_cid, &[header, rest].concat()) == *tag
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(ChecksumOnly), remote: Box::new(ChecksumOnly) },
        packet: KeyPair { local: Box::new(ChecksumOnly), remote: Box::new(ChecksumOnly) },
    }
}

/// Packets in the clear with a checksum.
#[derive(Clone, Copy, Debug)]
struct ChecksumOnly;

impl HeaderKey for ChecksumOnly {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl PacketKey for ChecksumOnly {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (header, rest) = buf.split_at_mut(header_len);
        let (payload, tag) = rest.split_at_mut(rest.len() - TAG);
        tag.copy_from_slice(&checksum(packet, header, payload));
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let (content, tag) = payload.split_last_chunk::<TAG>().ok_or(CryptoError)?;
        if checksum(packet, header, content) != *tag {
            return Err(CryptoError);
        }
        payload.truncate(payload.len() - TAG);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

fn checksum(packet: u64, header: &[u8], content: &[u8]) -> [u8; TAG] {
    let mut hasher = SipHasher13::new();
    hasher.write_u64(packet);
    hasher.write(header);
    hasher.write(content);
    hasher.finish128().as_bytes()
}
