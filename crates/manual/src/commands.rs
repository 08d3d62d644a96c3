//! The pages of a program and its commands.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::Roff;

use crate::page::{ManualPage, add_lines};

/// The page of `program`, and one for each command that its help lists.
pub(crate) fn pages(program: Command) -> io::Result<Vec<ManualPage>> {
    let version = program.get_version().unwrap_or_default().to_owned();
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    add(&program, &version, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, version: &str, pages: &mut Vec<ManualPage>) -> io::Result<()> {
    pages.push(page(command, version)?);
    for inner in command.get_subcommands() {
        // Another program does the command, and has pages of its own.
        let is_program = inner.is_disable_help_flag_set();
        if !inner.is_hide_set() && !is_program {
            add(inner, version, pages)?;
        }
    }
    Ok(())
}

fn page(command: &Command, version: &str) -> io::Result<ManualPage> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(format!("Punctual {version}"))
        .manual("Punctual");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|it| !it.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if command.get_subcommands().any(|it| !it.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        let mut roff = Roff::new();
        add_lines(&mut roff, &after.to_string());
        roff.to_writer(&mut text)?;
    }
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    Ok(ManualPage { name, section: 1, text })
}
