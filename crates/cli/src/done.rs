//! What a verb ends with: text and an exit code.

use serde::Serialize;

/// The answer is "no", or a check failed.
pub const NO: u8 = 1;
/// Wrong use or input.
pub const USE: u8 = 2;
/// Not permitted, or not supported here.
pub const NOT_HERE: u8 = 3;

/// The end of a verb.
#[derive(Debug, Default)]
pub struct Done {
    /// For standard output.
    pub text: String,
    /// For standard error.
    pub notes: String,
    /// The exit code.
    pub code: u8,
}

impl Done {
    /// Text and success.
    pub fn text(text: impl Into<String>) -> Done {
        Done { text: text.into(), ..Done::default() }
    }

    /// A value as JSON, and success.
    pub fn json(value: &impl Serialize) -> Result<Done, Failure> {
        Ok(Done::text(serde_json::to_string_pretty(value)? + "\n"))
    }

    /// The same, where something beside the answer failed: that is said, and the exit code is the worse one.
    pub fn but(mut self, error: &anyhow::Error) -> Done {
        self.notes += &format!("shelflife: {error:#}\n");
        let code = self.code.max(code_of(error));
        self.with_code(code)
    }

    /// The same with another exit code.
    pub fn with_code(self, code: u8) -> Done {
        Done { code, ..self }
    }
}

/// A verb that could not do its work.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// What went wrong.
    pub error: anyhow::Error,
}

/// The exit code for an error, by what it says of itself.
pub fn code_of(error: &anyhow::Error) -> u8 {
    let denied = error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        io == Some(std::io::ErrorKind::PermissionDenied)
            || cause.downcast_ref::<shelflife_control::Error>().is_some_and(|e| e.is_denied())
            || matches!(cause.downcast_ref(), Some(shelflife_run::Error::NoHook { .. }))
            || matches!(
                cause.downcast_ref(),
                Some(shelflife_run::Error::Control(inner)) if inner.is_denied()
            )
    });
    if denied { NOT_HERE } else { USE }
}
