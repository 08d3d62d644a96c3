//! Recordings: which there are, and excerpts of them as files.

use std::ops::Range;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::connections::OfStream;
use crate::access::{Caller, Right, Verdict};
use crate::app::Shared;
use crate::problem::Problem;
use crate::receiving::Receiving;
use crate::relay::{ExcerptFile, ExcerptTimes};
use crate::report::RecordingReport;
use crate::watch::{view, with_zone};

/// Recordings on the disk, newest first. Callers who may not read the relay's state get those of a
/// stream whose recordings they may take, without the places of the files.
#[utoipa::path(
    get, path = "/v1/recordings", operation_id = "listRecordings", tag = "recordings",
    params(OfStream), responses((status = 200, body = Vec<RecordingReport>)),
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(of): Query<OfStream>,
) -> Result<Json<Vec<RecordingReport>>, Problem> {
    let may_read = app.access().decide(&caller, &Right::Read).await;
    let may_read = matches!(may_read, Verdict::Allowed(_));
    if !may_read {
        let right = of.stream.clone().map_or(Right::Read, Right::Playback);
        app.require(&caller, &right).await?;
    }
    let mut recordings = app.relay().recordings(of.stream.as_deref()).await;
    for recording in recordings.iter_mut().filter(|_| !may_read) {
        (recording.file, recording.free_bytes) = (String::new(), None);
    }
    Ok(Json(recordings))
}

/// The recordings of a stream between two times, as one transport stream. `Range` with one range
/// and `If-Range` go on with a file that was cut off.
#[utoipa::path(
    get, path = "/v1/recordings/{name}", operation_id = "getExcerpt", tag = "recordings",
    params(
        ("name" = String, Path, description = "The stream's name; `/` is written `%2F`"),
        ExcerptTimes,
        ("Range" = Option<String>, Header, description = "The bytes to send"),
        ("If-Range" = Option<String>, Header, description = "The `ETag` that `Range` is about"),
    ),
    responses(
        (status = 200, content_type = "video/mp2t"), (status = 206, content_type = "video/mp2t"),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 416, body = Problem), (status = 422, body = Problem),
    ),
)]
pub(super) async fn excerpt(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Query(times): Query<ExcerptTimes>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let view = view(&app, &caller, &name, Right::Playback).await?;
    let times =
        ExcerptTimes { from: with_zone(&times.from), until: times.until.as_deref().map(with_zone) };
    let file = app.relay().excerpt(view, &times).await?;
    answer(&name, file, &headers)
}

/// The file, or the part of it that is asked for.
fn answer(name: &str, file: ExcerptFile, headers: &HeaderMap) -> Result<Response, Problem> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let version = format!("\"{}\"", file.version);
    let is_same = text(header::IF_RANGE).is_none_or(|wanted| wanted == version);
    let range = text(header::RANGE).filter(|_| is_same).and_then(|text| part_of(text, file.len));
    let len = file.len;
    let (status, range) = match range {
        None => (StatusCode::OK, 0..len),
        Some(range) if range.is_empty() => {
            let detail = format!("the file has {len} bytes, and none in this range");
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, detail);
            let headers = [(header::CONTENT_RANGE, format!("bytes */{len}"))];
            return Ok((headers, problem).into_response());
        }
        Some(range) => (StatusCode::PARTIAL_CONTENT, range),
    };
    let is_part = status == StatusCode::PARTIAL_CONTENT;
    let place = is_part.then(|| format!("bytes {}-{}/{len}", range.start, range.end - 1));
    let attachment = format!("attachment; filename=\"{}\"", file_name(name, &file));
    let headers = [
        (header::CONTENT_TYPE, "video/mp2t".to_owned()),
        (header::CONTENT_DISPOSITION, attachment),
        (header::CONTENT_LENGTH, (range.end - range.start).to_string()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::ETAG, version),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
    ];
    let body = Body::from_stream(Receiving((file.read)(range)));
    let mut response = (status, headers, body).into_response();
    if let Some(Ok(place)) = place.map(HeaderValue::try_from) {
        response.headers_mut().insert(header::CONTENT_RANGE, place);
    }
    Ok(response)
}

/// The bytes that a `Range` asks for, of a file of this length; an empty range if there are none.
/// `None` for what is no single range of bytes, which the header's definition lets a server ignore.
fn part_of(header: &str, len: u64) -> Option<Range<u64>> {
    let (first, last) = header.strip_prefix("bytes=")?.trim().split_once('-')?;
    let number = |text: &str| text.parse::<u64>().ok();
    if first.is_empty() {
        return Some(len.saturating_sub(number(last)?)..len);
    }
    let first = number(first)?;
    let end = match last {
        "" => len,
        last => number(last).filter(|last| *last >= first)?.saturating_add(1).min(len),
    };
    Some(first.min(end)..end)
}

/// The name of the stream and the time of the first picture, in letters that all systems take.
fn file_name(stream: &str, file: &ExcerptFile) -> String {
    let plain = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() || ['.', '_'].contains(&letter) => letter,
        _ => '-',
    };
    let stream: String = stream.chars().map(plain).collect();
    let start = file.start.to_string();
    let start = start.split('.').next().unwrap_or_default().replace('T', "_").replace(':', "-");
    format!("{stream}_{start}.ts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_read_and_anything_else_is_ignored() {
        for (text, range) in [
            ("bytes=0-", Some(0..100)),
            ("bytes=10-19", Some(10..20)),
            ("bytes=90-1000", Some(90..100)),
            ("bytes=-5", Some(95..100)),
            ("bytes=-1000", Some(0..100)),
            ("bytes=100-", Some(100..100)),
            ("bytes=200-300", Some(100..100)),
            ("bytes=-0", Some(100..100)),
            ("bytes=0-18446744073709551615", Some(0..100)),
            ("bytes=9-3", None),
            ("bytes=0-1,5-6", None),
            ("bytes=x-", None),
            ("bytes=-", None),
            ("lines=0-", None),
        ] {
            assert_eq!(part_of(text, 100), range, "{text}");
        }
    }
}
