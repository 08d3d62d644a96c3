use std::sync::mpsc;
use std::time::Duration;

use punctual::Phase;

use super::*;
use crate::testing::{any_port, assert_fails, listener, receive, send, set, until};
use crate::{ConnectHook, ListenHook, MemberState, SocketOptionValue, Wanted};

/// Options of both ends: links join a group, and messages are due at once.
const OPTIONS: [(OptionNumber, i32); 2] =
    [(OptionNumber::GROUPCONNECT, 1), (OptionNumber::LATENCY, 0)];

fn call(remote: SocketAddr, weight: u16, token: i32) -> LinkCall {
    LinkCall { local: None, remote, weight, token, options: Vec::new() }
}

/// A group of this kind that calls over each of these links.
fn calling(library: &Arc<Library>, kind: i32, calls: &[LinkCall]) -> i32 {
    let group = library.create_group(kind).unwrap();
    set(library, group, &[(OptionNumber::LATENCY, 0), (OptionNumber::CONNTIMEO, 300)]);
    library.connect_links(group, calls, &mut Vec::new()).unwrap();
    group
}

/// Waits until the links with these tokens are there and have these states.
#[track_caller]
fn until_links_are(library: &Library, group: i32, links: &[(i32, MemberState)]) -> Vec<MemberInfo> {
    until("the links have their states", || {
        let mut members = library.members(group).unwrap();
        members.sort_by_key(|member| member.token);
        let is_so = members.iter().map(|it| (it.token, it.state)).eq(links.iter().copied());
        is_so.then_some(members)
    })
}

fn silent() -> (std::net::UdpSocket, SocketAddr) {
    let silent = std::net::UdpSocket::bind(any_port()).unwrap();
    let address = silent.local_addr().unwrap();
    (silent, address)
}

/// Two ends of a group whose links have the tokens 1 and 2 at the caller.
struct Ends {
    library: Arc<Library>,
    listener: i32,
    address: SocketAddr,
    caller: i32,
    accepted: i32,
}

impl Ends {
    fn of(kind: i32) -> Self {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &OPTIONS);
        let links = [1, 2].map(|token| call(waiting.address, 0, token));
        let caller = calling(&library, kind, &links);
        let (accepted, _) = library.accept(waiting.id).unwrap();
        let ends =
            Self { library, listener: waiting.id, address: waiting.address, caller, accepted };
        until_links_are(&ends.library, caller, &[1, 2].map(|it| (it, MemberState::Idle)));
        until("the other end has both", || {
            (ends.library.members(accepted).unwrap().len() == 2).then_some(())
        });
        ends
    }

    /// The numbers of the link with this token, at the caller and at the other end.
    fn link(&self, token: i32) -> (i32, i32) {
        let members = self.library.members(self.caller).unwrap();
        let own = members.iter().find(|it| it.token == token).unwrap().id;
        let local = self.library.local_address(own).unwrap();
        let theirs = self.library.members(self.accepted).unwrap();
        let theirs = theirs.iter().find(|it| it.remote.port() == local.port()).unwrap();
        (own, theirs.id)
    }

    /// The other end closes the link with this token at the caller.
    fn lose(&self, token: i32) {
        let (lost, theirs) = self.link(token);
        self.library.close(theirs);
        until("it is lost", || {
            let members = self.library.members(self.caller).unwrap();
            members.iter().all(|it| it.id != lost).then_some(())
        });
    }
}

#[test]
fn a_message_over_two_links_of_a_broadcast_group_arrives_once() {
    let Ends { library, caller, accepted, .. } = Ends::of(BROADCAST);
    for text in [&b"one"[..], b"two", b"three"] {
        send(&library, caller, text);
        assert_eq!(receive(&library, accepted).unwrap(), text);
    }
    let members = until_links_are(&library, caller, &[1, 2].map(|it| (it, MemberState::Running)));
    assert!(members.iter().all(|it| library.group_of(it.id) == Ok(caller)));
    set(&library, accepted, &[(OptionNumber::RCVSYN, 0)]);
    assert_fails(receive(&library, accepted), Code::AgainReceive);
    library.close(caller);
    until("the other end hears of it", || {
        (library.state(accepted) == SocketState::Broken).then_some(())
    });
    assert_fails(library.members(caller), Code::InvalidParameter);
    assert!(members.iter().all(|it| library.state(it.id) == SocketState::Closed));
    library.shut_down();
}

#[test]
fn a_group_that_calls_two_listeners_of_a_program_is_one_group_there() {
    let library = Library::start().unwrap();
    let waiting = [(); 2].map(|()| listener(&library, &OPTIONS));
    let links = [1, 2].map(|token| call(waiting[token as usize - 1].address, 0, token));
    let caller = calling(&library, BROADCAST, &links);
    until_links_are(&library, caller, &[1, 2].map(|it| (it, MemberState::Idle)));
    let ids = waiting.each_ref().map(|it| it.id);
    let accepted = library.accept_any(&ids, Some(Duration::from_secs(5))).unwrap();
    until("it has both links", || (library.members(accepted).unwrap().len() == 2).then_some(()));
    for text in [&b"one"[..], b"two"] {
        send(&library, caller, text);
        assert_eq!(receive(&library, accepted).unwrap(), text);
    }
    for id in ids {
        set(&library, id, &[(OptionNumber::RCVSYN, 0)]);
        assert_fails(library.accept(id), Code::AgainReceive);
    }
    library.shut_down();
}

#[test]
fn a_backup_group_sends_over_the_link_with_the_larger_weight() {
    let library = Library::start().unwrap();
    let waiting = listener(&library, &OPTIONS);
    let links = [(1, 1), (2, 2)].map(|(weight, token)| call(waiting.address, weight, token));
    let group = calling(&library, BACKUP, &links);
    let (accepted, _) = library.accept(waiting.id).unwrap();
    // Neither carries anything before the first message.
    until_links_are(&library, group, &[1, 2].map(|it| (it, MemberState::Idle)));
    until("the better link runs alone", || {
        send(&library, group, b"on time");
        let members = library.members(group).unwrap();
        let state = |token| members.iter().find(|it| it.token == token).map(|it| it.state);
        let is_so = state(1) == Some(MemberState::Idle) && state(2) == Some(MemberState::Running);
        is_so.then_some(())
    });
    assert_eq!(receive(&library, accepted).unwrap(), b"on time");
    library.shut_down();
}

#[test]
fn the_programs_call_takes_the_place_of_that_of_the_library() {
    let ends = Ends::of(BROADCAST);
    let Ends { library, address, caller, .. } = &ends;
    let both = [1, 2].map(|it| (it, MemberState::Idle));
    for _ in 0..2 {
        ends.lose(1);
        // Before the library does.
        library.connect_links(*caller, &[call(*address, 0, 1)], &mut Vec::new()).unwrap();
        until_links_are(library, *caller, &both);
    }
    // The library would have called again by now.
    let later = now() + Duration::from_millis(2_500);
    until("the time passes", || {
        assert!(library.members(*caller).unwrap().len() <= 2);
        (now() > later).then_some(())
    });
    until_links_are(library, *caller, &both);
    library.shut_down();
}

#[test]
fn a_link_that_was_called_again_keeps_its_token_and_can_be_taken() {
    let ends = Ends::of(BROADCAST);
    let Ends { library, address, caller, .. } = &ends;
    ends.lose(2);
    let both = [1, 2].map(|it| (it, MemberState::Idle));
    let members = until_links_are(library, *caller, &both);
    let called = |token| {
        let mut started = Vec::new();
        library.connect_links(*caller, &[call(*address, 0, token)], &mut started).unwrap();
        started[0].id
    };
    assert_eq!(called(2), members[1].id);
    assert_eq!(library.members(*caller).unwrap().len(), 2);
    // Another call of the program's makes a further link.
    assert_ne!(called(2), members[1].id);
    assert_eq!(library.members(*caller).unwrap().len(), 3);
    library.shut_down();
}

#[test]
fn a_link_without_a_token_gets_one_and_its_hook_is_told_of_it() {
    let library = Library::start().unwrap();
    let (_silent, address) = silent();
    let group = library.create_group(BROADCAST).unwrap();
    set(&library, group, &[(OptionNumber::RCVSYN, 0), (OptionNumber::CONNTIMEO, 50)]);
    let (sender, told) = mpsc::channel();
    let hook = ConnectHook::new(move |id, code, _, token| {
        sender.send((id, code, token)).unwrap();
    });
    library.set_connect_hook(group, Some(hook)).unwrap();
    let mut started = Vec::new();
    let calls = [call(address, 0, -1), call(address, 0, -1)];
    library.connect_links(group, &calls, &mut started).unwrap();
    assert!(started.iter().all(|it| it.token >= 0) && started[0].token != started[1].token);
    for _ in 0..2 {
        let (id, code, token) = told.recv().unwrap();
        let call = started.iter().find(|it| it.id == id).unwrap();
        assert_eq!((code, token), (Code::NoServer, call.token));
    }
    library.shut_down();
}

#[test]
fn a_link_is_a_socket() {
    let ends = Ends::of(BROADCAST);
    let (link, theirs) = ends.link(1);
    let Ends { library, address, caller, accepted, .. } = ends;
    assert_eq!(library.peer_address(link).unwrap(), address);
    assert_eq!(library.local_address(theirs).unwrap(), address);
    let set = library.create_event_set();
    library.subscribe(set, link, Events::BROKEN).unwrap();
    let wanted = Wanted { sockets: Events::BROKEN, room: usize::MAX, system: None };
    let events = library.event_set(set).unwrap();
    assert_eq!(events.wait(wanted, None).unwrap().sockets, [(link, Events::OUT)]);
    send(&library, caller, b"on time");
    assert_eq!(receive(&library, accepted).unwrap(), b"on time");
    assert_eq!(library.statistics(link, false).unwrap().total.packets_sent_unique, 1);
    library.set_option(link, OptionNumber::OHEADBW, SocketOptionValue::Int(11)).unwrap();
    assert_eq!(library.option(link, OptionNumber::OHEADBW).unwrap(), SocketOptionValue::Int(11));
    assert_eq!(library.option(link, OptionNumber::RCVLATENCY).unwrap(), SocketOptionValue::Int(0));
    // Its messages are those of the group.
    assert_fails(receive(&library, link), Code::InvalidOperation);
    library.close(theirs);
    until("its loss is an event", || {
        let told = events.wait(wanted, None).unwrap().sockets;
        told[0].1.any(Events::ERR).then_some(())
    });
    library.close(link);
    assert_eq!(library.state(link), SocketState::Closed);
    library.shut_down();
}

#[test]
fn a_further_link_and_a_lost_one_are_updates() {
    let ends = Ends::of(BROADCAST);
    let Ends { library, address, caller, accepted, listener } = &ends;
    let wanted = Wanted { sockets: Events(0x1D), room: usize::MAX, system: None };
    let watch = |id| {
        let set = library.create_event_set();
        library.subscribe(set, id, Events::IN | Events::ERR | Events::UPDATE).unwrap();
        library.event_set(set).unwrap()
    };
    let [callers, own, theirs] = [*listener, *caller, *accepted].map(watch);
    for token in [3, 4] {
        let further = [call(*address, 0, token)];
        library.connect_links(*caller, &further, &mut Vec::new()).unwrap();
        let told = callers.wait(wanted, None).unwrap().sockets;
        assert_eq!(told, [(*listener, Events::UPDATE)]);
    }
    ends.lose(1);
    for (set, id) in [(&own, *caller), (&theirs, *accepted)] {
        assert_eq!(set.wait(wanted, None).unwrap().sockets, [(id, Events::UPDATE)]);
    }
    library.shut_down();
}

#[test]
fn a_hook_decides_on_each_link_and_gets_its_socket() {
    let library = Library::start().unwrap();
    let waiting = library.create_socket();
    set(&library, waiting, &OPTIONS);
    let (sender, asked) = mpsc::channel();
    let hook = ListenHook::new(move |id, _, _, _| {
        sender.send(id).unwrap();
        0
    });
    library.set_listen_hook(waiting, Some(hook)).unwrap();
    let address = crate::testing::listen(&library, waiting).address;
    let links = [1, 2].map(|token| call(address, 0, token));
    calling(&library, BROADCAST, &links);
    let (accepted, _) = library.accept(waiting).unwrap();
    for _ in 0..2 {
        let link = asked.recv().unwrap();
        until("it is a link of the group", || {
            (library.group_of(link) == Ok(accepted)).then_some(())
        });
        until("it is listed", || {
            library.members(accepted).unwrap().iter().any(|it| it.id == link).then_some(())
        });
    }
    library.shut_down();
}

#[test]
fn a_link_that_fails_leaves_the_others_and_reports_its_error_once() {
    let library = Library::start().unwrap();
    let waiting = listener(&library, &OPTIONS);
    let (_silent, silent) = silent();
    let links = [call(waiting.address, 0, 1), call(silent, 0, 2)];
    let group = calling(&library, BROADCAST, &links);
    let states = [(1, MemberState::Idle), (2, MemberState::Broken)];
    let members = until_links_are(&library, group, &states);
    assert_eq!(members[1].error, Code::NoServer);
    // Further calls of the same link take the place of the one that failed.
    library.connect_links(group, &[call(silent, 0, 2)], &mut Vec::new()).unwrap();
    let members = until_links_are(&library, group, &states);
    assert_eq!(members.len(), 2);
    library.shut_down();
}

#[test]
fn a_group_of_which_every_link_fails_is_broken_and_can_call_again() {
    let library = Library::start().unwrap();
    let (_silent, silent) = silent();
    let group = library.create_group(BROADCAST).unwrap();
    assert_eq!(library.state(group), SocketState::Broken, "it has no links");
    set(&library, group, &[(OptionNumber::CONNTIMEO, 100)]);
    let mut started = Vec::new();
    let links = [call(silent, 0, 1)];
    assert_fails(library.connect_links(group, &links, &mut started), Code::ConnectionLost);
    assert_eq!((library.state(group), started.len()), (SocketState::Broken, 1));
    let sent = library.send(group, b"lost", &mut Default::default());
    assert_fails(sent, Code::ConnectionLost);
    let waiting = listener(&library, &OPTIONS);
    library.connect_links(group, &[call(waiting.address, 0, 1)], &mut Vec::new()).unwrap();
    assert_eq!(library.state(group), SocketState::Connected);
    library.shut_down();
}

#[test]
fn a_group_that_has_lost_all_its_links_stays_broken_and_can_call_again() {
    let Ends { library, listener, address, caller, accepted } = Ends::of(BROADCAST);
    send(&library, caller, b"one");
    assert_eq!(receive(&library, accepted).unwrap(), b"one");
    library.close(accepted);
    let is_broken = || library.state(caller) == SocketState::Broken;
    until("it is broken", || is_broken().then_some(()));
    let sent = library.send(caller, b"lost", &mut Default::default());
    assert_fails(sent, Code::ConnectionLost);
    // A single socket would be closed by then.
    let later = now() + Duration::from_millis(2_500);
    until("the time passes", || {
        assert!(is_broken());
        (now() > later).then_some(())
    });
    assert!(library.members(caller).unwrap().is_empty());
    library.connect_links(caller, &[call(address, 0, 1)], &mut Vec::new()).unwrap();
    let (again, _) = library.accept(listener).unwrap();
    send(&library, caller, b"two");
    assert_eq!(receive(&library, again).unwrap(), b"two");
    library.shut_down();
}

#[test]
fn while_links_connect_there_is_no_room_to_send_yet() {
    let library = Library::start().unwrap();
    let (_silent, silent) = silent();
    let group = library.create_group(BROADCAST).unwrap();
    let sent = || library.send(group, b"early", &mut Default::default());
    assert_fails(sent(), Code::ConnectionLost);
    let unblocked = [(OptionNumber::RCVSYN, 0), (OptionNumber::SNDSYN, 0)];
    set(&library, group, &unblocked);
    set(&library, group, &[(OptionNumber::CONNTIMEO, 60_000)]);
    library.connect_links(group, &[call(silent, 0, 1)], &mut Vec::new()).unwrap();
    assert_eq!(library.state(group), SocketState::Connecting);
    assert_fails(sent(), Code::AgainSend);
    assert_fails(receive(&library, group), Code::NotConnected);
    library.shut_down();
}

#[test]
fn a_group_is_neither_bound_nor_does_it_listen() {
    let library = Library::start().unwrap();
    let group = library.create_group(BROADCAST).unwrap();
    assert_fails(library.bind(group, any_port()), Code::InvalidParameter);
    assert_fails(library.listen(group, 1), Code::InvalidSocket);
    assert_fails(library.accept(group), Code::InvalidSocket);
    assert_fails(library.meet(group, any_port(), any_port()), Code::InvalidSocket);
    assert_eq!(library.create_group(7).unwrap_err().code, Code::InvalidParameter);
    library.shut_down();
}

#[test]
fn options_of_single_sockets_are_refused_on_a_group() {
    let library = Library::start().unwrap();
    let group = library.create_group(BROADCAST).unwrap();
    let text = |text: &str| SocketOptionValue::Text(text.as_bytes().to_vec());
    for (number, value) in [
        (OptionNumber::RENDEZVOUS, SocketOptionValue::Bool(true)),
        (OptionNumber::SENDER, SocketOptionValue::Bool(true)),
        (OptionNumber::TSBPDMODE, SocketOptionValue::Bool(true)),
        (OptionNumber::CONGESTION, text("live")),
        (OptionNumber::TRANSTYPE, SocketOptionValue::Int(0)),
        (OptionNumber::GROUPCONNECT, SocketOptionValue::Int(1)),
        (OptionNumber::IPV6ONLY, SocketOptionValue::Int(1)),
        (OptionNumber::BINDTODEVICE, text("lo")),
        (OptionNumber::PACKETFILTER, text("fec,cols:10")),
        (OptionNumber::GROUPMINSTABLETIMEO, SocketOptionValue::Int(5_001)),
    ] {
        let refused = library.set_option(group, number, value);
        assert_fails(refused, Code::InvalidParameter);
    }
    let stable = OptionNumber::GROUPMINSTABLETIMEO;
    library.set_option(group, OptionNumber::PEERIDLETIMEO, SocketOptionValue::Int(6_000)).unwrap();
    library.set_option(group, stable, SocketOptionValue::Int(5_001)).unwrap();
    library.shut_down();
}

#[test]
fn a_group_has_the_key_state_and_the_first_number_of_its_first_link() {
    let library = Library::start().unwrap();
    let passphrase = |id| {
        let text = SocketOptionValue::Text(b"passphrase of both".to_vec());
        library.set_option(id, OptionNumber::PASSPHRASE, text).unwrap();
    };
    let waiting = library.create_socket();
    set(&library, waiting, &OPTIONS);
    passphrase(waiting);
    let address = crate::testing::listen(&library, waiting).address;
    let group = library.create_group(BROADCAST).unwrap();
    passphrase(group);
    assert_eq!(library.option(group, OptionNumber::ISN).unwrap(), SocketOptionValue::Int(-1));
    library.connect_links(group, &[call(address, 0, 1)], &mut Vec::new()).unwrap();
    let (accepted, _) = library.accept(waiting).unwrap();
    for id in [group, accepted] {
        assert_eq!(library.option(id, OptionNumber::KMSTATE).unwrap(), SocketOptionValue::Int(2));
        assert!(library.option(id, OptionNumber::ISN).unwrap().number() > 0);
    }
    library.shut_down();
}

#[test]
fn an_option_can_be_set_while_a_group_is_connected() {
    let Ends { library, caller, accepted, .. } = Ends::of(BROADCAST);
    for id in [caller, accepted] {
        library.set_option(id, OptionNumber::MAXBW, SocketOptionValue::Long(1_000_000)).unwrap();
        assert!(library.statistics(id, true).is_ok());
    }
    library.shut_down();
}

#[test]
fn a_group_that_is_closed_before_it_is_connected_calls_no_more() {
    let library = Library::start().unwrap();
    let (_silent, silent) = silent();
    let group = library.create_group(BROADCAST).unwrap();
    set(&library, group, &[(OptionNumber::RCVSYN, 0), (OptionNumber::CONNTIMEO, 60_000)]);
    library.connect_links(group, &[call(silent, 0, 1)], &mut Vec::new()).unwrap();
    let socket = library.find(group).unwrap();
    let inner = socket.lock().members.as_ref().unwrap().slot().unwrap().get();
    library.close(group);
    until("its calls are given up", || matches!(inner.phase(), Phase::Closed(_)).then_some(()));
    library.shut_down();
}

#[test]
fn a_group_that_has_ended_gives_all_that_it_has() {
    let Ends { library, caller, accepted, .. } = Ends::of(BROADCAST);
    // More than one look at the group takes, so that a look meets its end.
    for _ in 0..200 {
        send(&library, caller, b"on time");
    }
    let mut received = 0;
    library.close(caller);
    while receive(&library, accepted).is_ok() {
        received += 1;
    }
    assert!(received <= 200);
    until("it is broken", || (library.state(accepted) == SocketState::Broken).then_some(()));
    library.shut_down();
}
