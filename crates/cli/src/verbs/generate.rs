//! `generate`: man pages and completions from the definition of the arguments.

use std::fs;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Cli, GenerateArgs};
use crate::done::{Done, Failure};

pub fn run(args: &GenerateArgs) -> Result<Done, Failure> {
    let (man, completions) = (args.dir.join("man"), args.dir.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(Cli::command(), &man)?;
    let shells = [Shell::Bash, Shell::Fish, Shell::Zsh];
    for shell in shells {
        clap_complete::generate_to(shell, &mut Cli::command(), "shelflife", &completions)?;
    }
    Ok(Done::default())
}
