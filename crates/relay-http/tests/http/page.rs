//! The page.

use crate::client::Service;

#[tokio::test]
async fn every_file_that_the_pages_name_is_there() {
    let service = Service::by_token().await;
    let mut wanted = vec!["/".to_owned(), "/watch/live/studio".to_owned()];
    let mut seen = 0;
    while seen < wanted.len() {
        let path = wanted[seen].clone();
        seen += 1;
        let reply = service.get(&path).await;
        assert_eq!(reply.status, 200, "{path}");
        let kind = match path.rsplit('.').next() {
            Some("css") => "text/css",
            Some("js") => "text/javascript",
            Some("svg") => "image/svg+xml",
            _ => "text/html",
        };
        assert!(reply.head.contains(kind), "{path}: {reply:?}");
        for (start, _) in reply.body.match_indices("\"/page/") {
            let name = reply.body[start + 1..].split('"').next().unwrap().to_owned();
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
    }
    assert!(wanted.len() >= 13, "{wanted:?}");
}

#[tokio::test]
async fn pages_run_no_foreign_script_and_only_the_player_is_embedded() {
    let service = Service::open().await;
    for (path, ancestors) in [("/", "frame-ancestors 'none'"), ("/watch/a", "frame-ancestors *")] {
        let head = service.get(path).await.head;
        for policy in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", ancestors] {
            assert!(head.contains(policy), "{path}: {head}");
        }
        assert!(!head.contains("unsafe") && head.contains("nosniff"), "{head}");
    }
}

#[test]
fn scripts_neither_evaluate_text_nor_make_markup_of_it() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write"] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        assert!(!text.contains("https://") && !text.contains("style="), "{}", path.display());
    }
}
