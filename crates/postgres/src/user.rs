//! The user that a server runs as: never root.
//!
//! Invariant: a [`ServerUser`] is unprivileged, and this process is able to start programs as that user.
//! The standard library clears the supplementary groups when root switches the user of a child
//! (`setgroups(0)` before `setuid`), so the server keeps none of root's groups.

use std::ffi::CStr;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use rustix::process::Gid;
use rustix::process::Uid;
use rustix::thread::set_thread_groups;
use rustix::thread::set_thread_res_gid;
use rustix::thread::set_thread_res_uid;

use crate::error::Error;
use crate::error::Result;

/// What a program of another user still gets of this process's environment.
const HANDED_ON: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "TZ"];

/// An unprivileged user for server processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUser {
    name: String,
    uid: u32,
    gid: u32,
    home: PathBuf,
    /// Whether children have to be switched to this user.
    switch: bool,
}

impl ServerUser {
    /// The user to run a server as. Root may name any; without a name it is `postgres` if that user
    /// exists, else `nobody`. Everybody else runs it as themselves.
    ///
    /// # Errors
    /// [`Error::UnknownUser`], [`Error::RootUser`] if the choice is root, [`Error::NotRoot`] if it is
    /// somebody else and this process is not root.
    pub fn choose(name: Option<&str>) -> Result<Self> {
        let uid = rustix::process::geteuid().as_raw();
        let entry = match name {
            Some(name) => {
                Entry::named(name)?.ok_or_else(|| Error::UnknownUser { name: name.to_owned() })?
            }
            None if uid == 0 => match Entry::named("postgres")? {
                Some(entry) => entry,
                None => Entry::named("nobody")?
                    .ok_or_else(|| Error::UnknownUser { name: "nobody".to_owned() })?,
            },
            None => Entry::of(uid)?.unwrap_or_else(|| Entry::nameless(uid)),
        };
        Self::from_entry(entry, uid)
    }

    /// The user that owns a data folder.
    ///
    /// # Errors
    /// As [`ServerUser::choose`].
    pub fn of(uid: u32) -> Result<Self> {
        let entry = Entry::of(uid)?.unwrap_or_else(|| Entry::nameless(uid));
        Self::from_entry(entry, rustix::process::geteuid().as_raw())
    }

    fn from_entry(entry: Entry, current: u32) -> Result<Self> {
        if entry.uid == 0 {
            return Err(Error::RootUser);
        }
        if current != 0 && current != entry.uid {
            let name = Entry::of(current)?.map_or_else(|| current.to_string(), |me| me.name);
            return Err(Error::NotRoot { wanted: entry.name, current: name });
        }
        let Entry { name, uid, gid, home } = entry;
        Ok(ServerUser { name, uid, gid, home, switch: current == 0 })
    }

    /// The user's name, or the number where it has none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// User id, never 0.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Primary group id.
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// Makes `command` run as this user, without supplementary groups and with a small environment: nothing
    /// of root's may be read in the `/proc` of a process that is not root's. Call it before other variables
    /// are set.
    pub fn apply(&self, command: &mut Command) {
        if !self.switch {
            return;
        }
        command.uid(self.uid).gid(self.gid).env_clear();
        command.env("HOME", &self.home).env("USER", &self.name).env("LOGNAME", &self.name);
        for name in HANDED_ON {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
    }

    /// Makes the calling thread this user, for good, and all threads that it will start; without root's
    /// groups and capabilities. Other threads stay what they are, since Linux keeps credentials by thread. So
    /// root reaches a server that asks the kernel who connects (`peer` authentication).
    ///
    /// # Errors
    /// [`Error::NotRoot`] if the kernel refuses.
    pub fn assume(&self) -> Result<()> {
        if !self.switch {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let refused = |_| Error::NotRoot { wanted: self.name.clone(), current: "root".to_owned() };
        set_thread_groups(&[]).map_err(refused)?;
        set_thread_res_gid(gid, gid, gid).map_err(refused)?;
        set_thread_res_uid(uid, uid, uid).map_err(refused)
    }

    /// Gives `path` to this user; a link is not followed.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        if self.switch {
            std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
                .map_err(|source| Error::io("cannot give to the server's user:", path, source))?;
        }
        Ok(())
    }

    /// Gives an open file to this user.
    pub(crate) fn own_file(&self, file: &File) -> io::Result<()> {
        if self.switch {
            std::os::unix::fs::fchown(file, Some(self.uid), Some(self.gid))?;
        }
        Ok(())
    }

    /// Whether this user can enter `target`, an absolute folder, by asking the kernel: `program` (any that
    /// ends at once) is started there as this user. Access lists and namespaces are thus honoured.
    ///
    /// # Errors
    /// [`Error::Unreachable`] names the first folder on the way that refuses.
    pub fn check_reach(&self, target: &Path, program: &Path) -> Result<()> {
        if !self.switch {
            return Ok(());
        }
        // If the program itself cannot be run, that is what the user must hear.
        self.start_in(Path::new("/"), program)
            .map_err(|source| Error::io("the server's user cannot run", program, source))?;
        if self.start_in(target, program).is_ok() {
            return Ok(());
        }
        let mut way: Vec<&Path> = target.ancestors().collect();
        way.reverse();
        for folder in way {
            if let Err(source) = self.start_in(folder, program) {
                if source.kind() != io::ErrorKind::PermissionDenied {
                    return Err(Error::io("the server's user cannot enter", folder, source));
                }
                return Err(Error::Unreachable {
                    folder: folder.to_owned(),
                    target: target.to_owned(),
                    user: self.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn start_in(&self, folder: &Path, program: &Path) -> io::Result<()> {
        let mut command = Command::new(program);
        command.arg("--version").current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.apply(&mut command);
        command.spawn()?.wait().map(drop)
    }
}

/// One line of the user database.
struct Entry {
    name: String,
    uid: u32,
    gid: u32,
    home: PathBuf,
}

impl Entry {
    fn named(name: &str) -> Result<Option<Self>> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        Self::look_up(|entry, buffer, size, found| {
            // SAFETY: `name` is a C string that outlives the call; the other pointers are `look_up`'s.
            unsafe { libc::getpwnam_r(name.as_ptr(), entry, buffer, size, found) }
        })
    }

    fn of(uid: u32) -> Result<Option<Self>> {
        Self::look_up(|entry, buffer, size, found| {
            // SAFETY: the pointers are `look_up`'s.
            unsafe { libc::getpwuid_r(uid, entry, buffer, size, found) }
        })
    }

    /// A user without entry, as containers have them.
    fn nameless(uid: u32) -> Self {
        let gid = rustix::process::getegid().as_raw();
        Entry { name: uid.to_string(), uid, gid, home: "/".into() }
    }

    /// Calls one of the `getpw*_r` functions with a buffer that is large enough. `ask` gets pointers that
    /// are valid for writes during the call: the entry, the buffer of the given size, and the result.
    fn look_up(
        ask: impl Fn(
            *mut libc::passwd,
            *mut libc::c_char,
            libc::size_t,
            *mut *mut libc::passwd,
        ) -> libc::c_int,
    ) -> Result<Option<Self>> {
        let mut buffer: Vec<libc::c_char> = vec![0; 1024];
        loop {
            let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
            let mut found = std::ptr::null_mut();
            match ask(entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found) {
                0 if found.is_null() => return Ok(None),
                0 => {
                    // SAFETY: success with a result means that `entry` is filled in (getpwnam_r(3)).
                    let entry = unsafe { entry.assume_init() };
                    return Ok(Some(Entry {
                        name: text(entry.pw_name),
                        uid: entry.pw_uid,
                        gid: entry.pw_gid,
                        home: text(entry.pw_dir).into(),
                    }));
                }
                libc::ERANGE if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 2, 0),
                // "Not found" has many names there (getpwnam_r(3), ERRORS).
                libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
                error => {
                    let source = io::Error::from_raw_os_error(error);
                    return Err(Error::io("cannot read", Path::new("/etc/passwd"), source));
                }
            }
        }
    }
}

fn text(pointer: *const libc::c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: a non-null field of a `passwd` that was just filled in is a C string in a buffer that the
    // caller still holds.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_never_root() {
        match ServerUser::choose(Some("root")) {
            Err(Error::RootUser) => {}
            other => panic!("{other:?}"),
        }
        let user = ServerUser::choose(None).unwrap();
        assert_ne!(user.uid(), 0);
        assert_eq!(ServerUser::of(user.uid()).unwrap(), user);
    }

    #[test]
    fn an_unknown_name_is_told() {
        let told = ServerUser::choose(Some("no-such-user-here")).unwrap_err().to_string();
        assert!(told.contains("no user named no-such-user-here"), "{told}");
        ServerUser::choose(Some("nul\0inside")).unwrap_err();
    }

    #[test]
    fn somebody_else_needs_root() {
        let entry = |uid| Entry { name: format!("u{uid}"), uid, gid: uid, home: "/".into() };
        assert!(matches!(ServerUser::from_entry(entry(7), 8), Err(Error::NotRoot { .. })));
        assert!(!ServerUser::from_entry(entry(8), 8).unwrap().switch);
        assert!(ServerUser::from_entry(entry(8), 0).unwrap().switch);
    }
}
