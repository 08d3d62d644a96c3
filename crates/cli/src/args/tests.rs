use clap::CommandFactory;

use super::*;

#[test]
fn the_definitions_are_sound() {
    Cli::command().debug_assert();
}
