//! Groups of links.

use std::mem::MaybeUninit;

use punctual_srt::abi::{GroupConfig, GroupData};
use punctual_srt::groups::{
    srt_config_add, srt_connect_group, srt_create_config, srt_create_group, srt_delete_config,
    srt_group_data, srt_groupof, srt_prepare_endpoint,
};

use super::connecting::is_group;
use super::input::Input;
use super::states::{BROKEN, INIT, NONEXISTENT, States};
use super::verdict::{CONNLOST, INVPARAM, INVSOCK, LARGEMSG, begin, judge, judge_quiet};
use super::{MOST_SOCKETS, World};

/// The places for links.
const LINKS: usize = 8;

impl World {
    pub(crate) fn create_group(&mut self, input: &mut Input<'_>) {
        let kind = input.pick(&[1, 1, 1, 2, 2, 1_000, 0, 3, -1, i32::MAX]);
        self.create_group_of(kind);
    }

    pub(crate) fn create_group_of(&mut self, kind: i32) -> Option<i32> {
        if self.sockets.len() >= MOST_SOCKETS {
            return None;
        }
        begin();
        let group = srt_create_group(kind);
        let error = judge("srt_create_group", group, &[INVPARAM]);
        if error.is_some() {
            return None;
        }
        assert!(is_group(group), "a group has the number {group}");
        self.add(group, States::of(&[INIT, BROKEN]));
        self.hasten(group, false);
        Some(group)
    }

    pub(crate) fn connect_group(&mut self, input: &mut Input<'_>) {
        let group = self.number(input);
        let count = usize::from(input.byte() % 3) + 1;
        let links: Vec<GroupConfig> = (0..count).map(|_| self.link(input)).collect();
        self.connect_links(group, links, input);
    }

    /// A link to an address that is perhaps none.
    fn link(&self, input: &mut Input<'_>) -> GroupConfig {
        let (local, remote) = (self.local(input), self.remote(input));
        let source = if input.is(220) { std::ptr::null() } else { local.as_ptr() };
        let len = if source.is_null() { remote.len } else { remote.len.min(local.len) };
        begin();
        // SAFETY: each address has the bytes of the largest one.
        let mut link = unsafe { srt_prepare_endpoint(source, remote.as_ptr(), len) };
        judge_quiet("srt_prepare_endpoint");
        assert!(matches!(link.errorcode, 0 | INVPARAM), "{}", link.errorcode);
        link.weight = u16::from(input.byte());
        link.token = input.i32();
        if input.is(60) && !self.configs.is_empty() {
            link.config = input.pick(&self.configs);
        }
        link
    }

    pub(crate) fn connect_links(
        &mut self,
        group: i32,
        mut links: Vec<GroupConfig>,
        input: &mut Input<'_>,
    ) {
        let count = i32::try_from(links.len()).unwrap_or(0);
        let told = if input.is(16) { input.pick(&[0, -1, i32::MIN]) } else { count };
        let place = if input.is(8) { std::ptr::null_mut() } else { links.as_mut_ptr() };
        begin();
        // SAFETY: there are that many links, and their options come from `srt_create_config`.
        let connected = unsafe { srt_connect_group(group, place, told) };
        let error = judge("srt_connect_group", connected, &[INVPARAM, INVSOCK, CONNLOST]);
        if !is_group(group) || self.is_gone(group) || told <= 0 || place.is_null() {
            assert!(matches!(error, Some(INVPARAM | INVSOCK)), "{error:?}");
            return;
        }
        self.may_become(group, States::calling());
        for link in &links {
            if link.id > 0 && self.sockets.len() < MOST_SOCKETS {
                self.note_link(link.id);
            }
        }
    }

    pub(crate) fn read_group(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        begin();
        let group = srt_groupof(id);
        judge("srt_groupof", group, &[INVPARAM, INVSOCK]);
        assert!(group < 0 || is_group(group), "{group} is the group of {id}");
        let mut places = [const { MaybeUninit::<GroupData>::uninit() }; LINKS];
        let mut len = usize::from(input.byte()) % (LINKS + 1);
        let nulls = input.byte();
        let output = if nulls < 30 { std::ptr::null_mut() } else { places.as_mut_ptr().cast() };
        let length = if nulls > 240 { std::ptr::null_mut() } else { &raw mut len };
        begin();
        // SAFETY: there are that many places.
        let count = unsafe { srt_group_data(id, output, length) };
        let error = judge("srt_group_data", count, &[INVPARAM, INVSOCK, LARGEMSG]);
        if self.is_gone(id) || !is_group(id) {
            assert!(matches!(error, Some(INVPARAM | INVSOCK)), "{error:?}");
        }
        let written = usize::try_from(count).unwrap_or(0);
        assert!(written <= LINKS, "{written} links were written");
        for place in &places[..written] {
            // SAFETY: the call has written this many.
            let link = unsafe { place.assume_init_ref() };
            assert!((1..=NONEXISTENT).contains(&link.sockstate), "{}", link.sockstate);
            assert!((0..=3).contains(&link.memberstate), "{}", link.memberstate);
            assert!(link.id > 0 && !is_group(link.id), "a link has the number {}", link.id);
        }
    }

    /// Makes, fills and ends options of links.
    pub(crate) fn configure_link(&mut self, input: &mut Input<'_>) {
        let choice = input.byte();
        begin();
        if choice < 100 && self.configs.len() < 4 {
            let config = srt_create_config();
            assert!(!config.is_null());
            self.configs.push(config);
        } else if choice < 120 {
            let config = self.configs.pop().unwrap_or(std::ptr::null_mut());
            // SAFETY: it is used nowhere else.
            unsafe { srt_delete_config(config) };
        } else {
            let config = match self.configs.is_empty() || input.is(10) {
                true => std::ptr::null_mut(),
                false => input.pick(&self.configs),
            };
            let value = input.number().to_ne_bytes();
            let len = input.pick(&[4, 4, 4, 1, 0, 2, -1]);
            let option = i32::from(input.byte() % 65);
            // SAFETY: the value has room for every length.
            let added = unsafe { srt_config_add(config, option, value.as_ptr().cast(), len) };
            assert!(matches!(added, 0 | -1), "srt_config_add returned {added}");
        }
        judge_quiet("srt_config_add");
    }
}
