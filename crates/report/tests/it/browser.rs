//! A page in headless Chromium: every picture is there and readable, on a desk and on a phone;
//! nothing is asked for, and the console stays silent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sample::{FIGURES, page};

/// Frames: what is judged on a desk and on a phone, and a page that is wrong in every way.
const FRAMES: [(&str, u32); 3] = [("page.html", 1000), ("page.html", 360), ("wrong.html", 360)];

/// Looks at each frame and writes down what it sees.
const LOOK: &str = r"
const seen = frame => {
  const page = frame.contentDocument, root = page.documentElement;
  const boxes = element => element.getBoundingClientRect();
  const shown = element => boxes(element).width > 100 && boxes(element).height > 40;
  const figures = [...page.querySelectorAll('figure')];
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
    pictures: figures.filter(f => [...f.querySelectorAll('svg, .heat')].some(shown)).length,
    marks: page.querySelectorAll('.mark, .line, .bar, .cell').length,
    too_wide: root.scrollWidth - root.clientWidth,
    cut_off: texts, overlaps,
    requests: frame.contentWindow.performance.getEntriesByType('resource').map(e => e.name),
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
<img src='missing.png'><figure><svg viewBox='0 0 10 10' width='300' height='100'><text x='9'>cut off</text>
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
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("page.html", &page().to_string());
    write("wrong.html", WRONG);
    let frames = FRAMES.map(|(page, width)| {
        format!("<iframe src='{page}' style='width:{width}px;height:800px;border:0'></iframe>")
    });
    write("look.html", &format!("<!DOCTYPE html><body>{}<script>{LOOK}</script>", frames.concat()));
    let (dom, said) = dump(&browser, folder.path());
    let (_, json) = dom.split_once("<body>").unwrap_or_else(|| panic!("{dom}\n{said}"));
    let json = json.split("</body>").next().unwrap_or_default();
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let seen: Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {dom}\n{said}"));
    let none = serde_json::json!([]);
    for (frame, (_, width)) in [&seen[0], &seen[1]].into_iter().zip(FRAMES) {
        assert_eq!(frame["figures"], FIGURES, "{width}: {frame}");
        assert_eq!(frame["pictures"], FIGURES, "{width}: {frame}");
        assert!(frame["marks"].as_u64() > Some(100), "{width}: {frame}");
        assert_eq!(frame["too_wide"], 0, "{width}: {frame}");
        for faults in ["cut_off", "overlaps", "requests"] {
            assert_eq!(frame[faults], none, "{width}: {faults}");
        }
        assert_eq!(frame["ran"], false);
    }
    // what is looked for would be seen
    let wrong = &seen[2];
    assert_eq!((&wrong["pictures"], &wrong["ran"]), (&1.into(), &true.into()), "{wrong}");
    assert!(wrong["too_wide"].as_u64() > Some(500), "{wrong}");
    for faults in ["cut_off", "overlaps", "requests"] {
        assert_ne!(wrong[faults], none, "{faults}: {wrong}");
    }
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    let (of_wrong, of_page): (Vec<&str>, Vec<&str>) =
        console.into_iter().partition(|line| line.contains("wrong.html"));
    assert!(!of_wrong.is_empty(), "{said}");
    assert!(of_page.is_empty(), "{of_page:?}");
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut all = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    all.find(|program| program.is_file())
}

/// The page that looks, after it has; and what the browser said.
fn dump(browser: &Path, folder: &Path) -> (String, String) {
    let out = |name: &str| fs::File::create(folder.join(name)).unwrap();
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--allow-file-access-from-files", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", folder.join("look.html").display()))
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
