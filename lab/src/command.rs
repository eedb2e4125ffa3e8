//! Programs of the machine: run to the end, with what they said on standard error in the error.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `command` and returns its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("run {program}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
        bail!("{program} {}: {}\n{}", arguments.join(" "), done.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Runs `command` for its effect.
pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}
