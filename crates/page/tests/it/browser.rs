//! Pages in headless Chromium: every picture is there and readable, on a desk and on a phone;
//! nothing is asked for, and the console stays silent.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use shelflife_atlas::{Request, atlas};
use shelflife_page::{TrialPage, trial};
use shelflife_postgres::Cancel;
use shelflife_report::html::Page;
use shelflife_run::Hook;
use shelflife_ssd::Drive;
use shelflife_trial::filesystem::Kind;

use crate::made_up::{results, simulated, trace};

/// A page with every kind of picture.
#[path = "../../../report/tests/it/sample.rs"]
mod sample;

/// A folder that an atlas left, without its traces.
const ATLAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../atlas/tests/samples/v1");

/// Where the browser finds the pages.
const SITE: &str = "http://shelflife.test/";

/// A desk and a phone.
const WIDTHS: [u32; 2] = [1000, 360];

/// Looks at each frame and writes down what it sees.
const LOOK: &str = r"
const seen = frame => {
  const page = frame.contentDocument, root = page.documentElement;
  const boxes = element => element.getBoundingClientRect();
  const shown = element => boxes(element).width > 100 && boxes(element).height > 40;
  const figures = [...page.querySelectorAll('figure')];
  const pictured = f => [...f.querySelectorAll('svg, .heat')].some(shown);
  const texts = [], overlaps = [];
  for (const svg of [...page.querySelectorAll('figure > svg:not(.shared)')].filter(shown)) {
    const edge = boxes(svg);
    const all = [...svg.querySelectorAll('text')].map(text => [text.textContent, boxes(text)]);
    for (const [text, b] of all) {
      if (b.left < edge.left - 2 || b.right > edge.right + 2 || b.top < edge.top - 2 ||
          b.bottom > edge.bottom + 2) texts.push(text);
    }
    all.forEach(([text, a], at) => all.slice(at + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 4) overlaps.push(text + ' | ' + other);
    }));
  }
  return {
    figures: figures.length,
    pictures: figures.filter(pictured).map(f => f.querySelector('h3')?.textContent),
    marks: page.querySelectorAll('.mark, .line, .bar, .cell').length,
    too_wide: root.scrollWidth - root.clientWidth,
    cut_off: texts, overlaps,
    ran: frame.contentWindow.ran === true,
    font: frame.contentWindow.getComputedStyle(page.body).fontFamily,
  };
};
onload = () => setTimeout(() => {
  const said = JSON.stringify([...document.querySelectorAll('iframe')].map(seen));
  document.body.textContent = said;
}, 100);
";

/// As much wrong as a page can be: a script that runs, something loaded, no room for its text.
const WRONG: &str = "<!DOCTYPE html><title>wrong</title><script>ran = true; console.error('wrong')</script>
<img src='http://elsewhere.example/picture.png'><figure><svg viewBox='0 0 10 10' width='300' height='100'><text x='9'>cut off</text>
<text x='9.1'>overlapping</text></svg></figure><figure></figure>
<div style='width: 900px'>wide</div>";

#[test]
fn a_browser_shows_every_picture_and_asks_for_nothing() {
    let name = "a_browser_shows_every_picture_and_asks_for_nothing";
    let Some(browser) = find() else {
        println!("skipped: {name}: no chromium");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pages = [
        ("every.html", sample::page(), sample::FIGURES),
        ("trial.html", of_trial(folder.path()), 8),
        ("atlas.html", of_atlas(folder.path()), 4),
    ];
    // each on a desk and on a phone, and a page that is wrong in every way
    let mut frames: Vec<(&str, u32)> =
        pages.iter().flat_map(|(name, ..)| WIDTHS.map(|width| (*name, width))).collect();
    frames.push(("wrong.html", 360));
    let look: String = frames
        .iter()
        .map(|(page, width)| {
            format!("<iframe src='{page}' style='width:{width}px;height:800px;border:0'></iframe>")
        })
        .collect();
    let look = format!(
        "<!DOCTYPE html><link rel='icon' href='data:,'><body>{look}<script>{LOOK}</script>"
    );
    let mut site = vec![("look.html", look), ("wrong.html", WRONG.to_owned())];
    site.extend(pages.iter().map(|(name, page, _)| (*name, page.to_string())));
    let server = Server::start(site);
    let (dom, said) = dump(&browser, folder.path(), server.port);
    let (_, json) = dom.split_once("<body>").unwrap_or_else(|| panic!("{dom}\n{said}"));
    let json = json.split("</body>").next().unwrap_or_default();
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let seen: Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {dom}\n{said}"));
    let none = serde_json::json!([]);
    for (at, (name, _, figures)) in pages.iter().enumerate() {
        for (width, frame) in WIDTHS.into_iter().zip([&seen[2 * at], &seen[2 * at + 1]]) {
            let pictures = frame["pictures"].as_array().unwrap();
            assert_eq!(frame["figures"], *figures, "{name} {width}: {frame}");
            assert_eq!(pictures.len(), *figures, "{name} {width}: {frame}");
            let victims = pictures.iter().filter_map(Value::as_str);
            let victims = victims.filter(|title| title.starts_with("Victims")).count();
            assert!(victims > 0, "{name} {width}: {frame}");
            assert!(frame["marks"].as_u64() > Some(20), "{name} {width}: {frame}");
            assert_eq!(frame["too_wide"], 0, "{name} {width}: {frame}");
            for faults in ["cut_off", "overlaps"] {
                assert_eq!(frame[faults], none, "{name} {width}: {faults}");
            }
            assert_eq!(frame["ran"], false);
        }
    }
    // what is looked for would be seen
    let wrong = &seen[2 * pages.len()];
    assert_eq!(wrong["pictures"].as_array().map(Vec::len), Some(1), "{wrong}");
    assert_eq!(wrong["ran"], true, "{wrong}");
    assert!(wrong["too_wide"].as_u64() > Some(500), "{wrong}");
    for faults in ["cut_off", "overlaps"] {
        assert_ne!(wrong[faults], none, "{faults}: {wrong}");
    }
    let mut asked = server.asked.lock().unwrap().clone();
    asked.sort_unstable();
    asked.dedup();
    let wanted = ["/atlas.html", "/every.html", "/picture.png", "/trial.html", "/wrong.html"];
    assert_eq!(asked, wanted);
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    let (of_wrong, of_page): (Vec<&str>, Vec<&str>) =
        console.into_iter().partition(|line| line.contains("wrong.html"));
    assert!(!of_wrong.is_empty(), "{said}");
    assert!(of_page.is_empty(), "{of_page:?}");
}

/// A recorded trial's.
fn of_trial(folder: &Path) -> Page {
    let place = folder.join("trace");
    trace(&place, 20_000);
    let results = results(&place, 16);
    let (outcome, simulated) = (results.outcome().unwrap(), simulated());
    let simulated = Some(&simulated);
    trial(&TrialPage { results: &results, outcome: &outcome, simulated, note: None })
}

/// That of an atlas that lies there.
fn of_atlas(folder: &Path) -> Page {
    let place = folder.join("atlas");
    let (from, to) = (Path::new(ATLAS).join("unlogged"), place.join("unlogged"));
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(from).unwrap().flatten() {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    let hook = folder.join("hook.so");
    fs::write(&hook, "").unwrap();
    let drive = fs::read_to_string(Path::new(ATLAS).join("drive.toml")).unwrap();
    let request = Request {
        folder: place,
        scenarios: vec!["unlogged".to_owned()],
        drives: vec![Drive::parse("drive.toml", &drive).unwrap()],
        transport: None,
        kind: Kind::Ext4,
        size: 1 << 30,
        fill: 0.9,
        writes: 5.0,
        limit: Duration::from_secs(1),
        memory_bytes: None,
        hook: Hook::at(&hook).unwrap(),
        user: None,
        bindir: None,
        cancel: Cancel::never(),
    };
    let atlas = atlas(&request, &mut |_| ()).unwrap();
    assert!(atlas.failed.is_empty(), "{:?}", atlas.failed);
    shelflife_atlas::page(&atlas)
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut all = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    all.find(|program| program.is_file())
}

/// The page that looks, after it has; and what the browser said.
fn dump(browser: &Path, folder: &Path, port: u16) -> (String, String) {
    let out = |name: &str| fs::File::create(folder.join(name)).unwrap();
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom"])
        // whatever is asked of whom comes to the server
        .arg(format!("--host-resolver-rules=MAP * 127.0.0.1:{port}"))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("{SITE}look.html"))
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(out("dom"))
        .stderr(out("said"))
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        // a browser that hangs must not hang the tests
        if begun.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let read = |name: &str| String::from_utf8_lossy(&fs::read(folder.join(name)).unwrap()).into();
    (read("dom"), read("said"))
}

/// Serves the pages, and notes what they ask for. It ends with the process.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(pages: Vec<(&'static str, String)>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server { port: listener.local_addr().unwrap().port(), asked: Arc::default() };
        let asked = Arc::clone(&server.asked);
        std::thread::spawn(move || {
            // one at a time: a connection that asks for nothing is given up
            for mut stream in listener.incoming().flatten() {
                let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let Some(line) = lines.next() else { continue };
                let heads: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                // the browser asks for things of its own too
                let of_page = format!("referer: {SITE}");
                let of_page = heads.iter().any(|head| head.to_lowercase().starts_with(&of_page));
                let path = line.split(' ').nth(1).unwrap_or("?").to_owned();
                let page = pages.iter().find(|(name, _)| path[1..] == **name);
                let (status, body) = page.map_or(("404 no", ""), |(_, body)| ("200 ok", body));
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nCache-Control: no-store\r\n\
                     Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                if of_page {
                    asked.lock().unwrap().push(path);
                }
            }
        });
        server
    }
}
