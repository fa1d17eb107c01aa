// Creates elements without markup: every text is inserted as text.

/** An element with properties (`class`, `text`, attributes, `on...` listeners) and children. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") made.textContent = value;
    else if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Changes a text only if it differs, to avoid repeated announcements and layout. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
