// Elements of the page, and numbers as people read them.

/** An element with properties and children. A property `onclick` is a listener. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Sets a text only if it changed, so that selections and screen readers are left alone. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
  element.toggleAttribute("data-none", text === "–");
}

/**
 * Makes the children of `parent` those of `items`, and keeps the element of an item that stays.
 * `make` gives an element with a method `show(item)`.
 */
export function keyed(parent, items, key, make) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let child = old.get(name);
    old.delete(name);
    if (!child) {
      child = make(item);
      child.dataset.key = name;
    }
    child.show(item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of old.values()) child.remove();
}

/** `5.21 Mb/s`; nothing for an unknown rate. */
export function rate(bps) {
  if (bps === null || bps === undefined) return "–";
  if (bps >= 1e9) return `${(bps / 1e9).toFixed(2)} Gb/s`;
  if (bps >= 1e6) return `${(bps / 1e6).toFixed(bps >= 1e8 ? 0 : bps >= 1e7 ? 1 : 2)} Mb/s`;
  return `${Math.round(bps / 1e3)} kb/s`;
}

/** `1.2 GB`. */
export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? count : count.toFixed(count < 10 ? 2 : count < 100 ? 1 : 0)} ${units[unit]}`;
}

/** `12,345`. */
export function whole(count) {
  return count === null || count === undefined ? "–" : count.toLocaleString("en");
}

/** `20.1 ms`. */
export function millis(ms) {
  if (ms === null || ms === undefined) return "–";
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** `3 h 20 min` since a time of the API. */
export function since(time) {
  return time ? lasting(Date.now() - Date.parse(time)) : "–";
}

/** `3 h 20 min` for a number of milliseconds. */
export function lasting(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  if (minutes) return `${minutes} min ${seconds % 60} s`;
  return `${seconds} s`;
}

/** The time of day of a time of the API. */
export function clock(time) {
  return time ? new Date(time).toLocaleTimeString([], { hour12: false }) : "–";
}

/** `H.264 1920×1080 25 fps · AAC`. */
export function described(tracks) {
  return tracks.filter((track) => track.kind !== "data").map((track) => {
    const size = track.width ? ` ${track.width}×${track.height}` : "";
    const fps = track.frame_rate ? ` ${Number(track.frame_rate.toFixed(2))} fps` : "";
    return track.codec + size + fps;
  }).join(" · ") || "–";
}
