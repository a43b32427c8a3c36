//! Opens a page and runs a script of the test in it.

use super::browser::{Page, open};

/// The text that `script` passes to `answer(text)`, in a frame of this width. Everything is drawn
/// before `script` runs. A frame can be as narrow as a phone; a window of Chromium cannot.
pub fn ask(page: &Page, hash: &str, width: u32, script: &str) -> Option<String> {
    let asking =
        page.2.replacen("</body>", &format!("<script>{ASK}{script}}})</script></body>"), 1);
    let place = page.0.path();
    std::fs::write(place.join("asked.html"), asking).unwrap();
    let frame = format!(
        "<!DOCTYPE html><iframe src=\"asked.html{hash}\" style=\"width: {width}px; height: 900px; \
         border: 0\"></iframe><pre>no answer</pre><script>addEventListener('message', (event) => {{ \
         document.querySelector('pre').textContent = event.data; \
         document.documentElement.dataset.drawn = 'yes'; }});</script>"
    );
    let outer = place.join("frame.html");
    std::fs::write(&outer, frame).unwrap();
    let dom = open(&outer, "", 1600)?;
    let answer = dom.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap().0;
    Some(answer.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

/// Waits until everything is drawn; the script and the end of the call follow.
const ASK: &str = "
const answer = (text) => parent.postMessage(text, '*');
new Promise((resolve) => {
  const look = () => (document.documentElement.dataset.drawn === 'yes' ? resolve() : setTimeout(look, 20));
  look();
}).then(() => {
";
