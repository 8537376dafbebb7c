/** How is the page drawn? Nodes are made by `h`, and a new tree is laid over the old one by `morph`: what did not change stays,
 *  with its focus, its selection and its scroll position. No templates, no eval, nothing but the DOM. */

/** An element. `props`: attributes, `on…` handlers, `key` (identity among its siblings), `style` (an object), `own` (the node
 *  minds its inside itself; see `morph`). Children: nodes, text, numbers, arrays; null and false are nothing. */
export function h(tag, props, ...children) {
  const svg = SVG.has(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) listen(node, name.slice(2), value);
    else if (name === "key") node._key = value;
    else if (name === "own") node._own = value;
    else if (name === "style") for (const [rule, to] of Object.entries(value)) node.style.setProperty(rule, to);
    else if (name === "value") { node.value = value; node._value = value; }
    else if (name === "checked" || name === "selected" || name === "open" || name === "disabled") node[name] = true;
    else node.setAttribute(name, value === true ? "" : value);
  }
  add(node, children);
  if (tag === "select" && props && "value" in props) node.value = props.value;
  return node;
}

const SVG = new Set(["svg", "rect", "path", "line", "g", "circle", "title_"]);

function add(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(node, child);
    else node.append(child instanceof Node ? child : String(child));
  }
}

/** One listener a type for the life of a node; what it calls may change. */
function listen(node, type, handler) {
  node._on = node._on || {};
  if (!(type in node._on)) node.addEventListener(type, (event) => node._on[type] && node._on[type](event));
  node._on[type] = handler;
}

/** Make `from` look like `to`, and return what stands there now. */
export function morph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName || from._key !== to._key || from._own !== to._own) {
    from.replaceWith(to);
    return to;
  }
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return from;
  }
  if (from._own !== undefined) {
    from._renew?.(to);
    return from;
  }
  attributes(from, to);
  for (const type of Object.keys(from._on || {})) if (!to._on || !(type in to._on)) from._on[type] = null;
  for (const [type, handler] of Object.entries(to._on || {})) listen(from, type, handler);
  children(from, to);
  values(from, to);
  return from;
}

function attributes(from, to) {
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of [...to.attributes]) {
    if (name === "style") { if (from.style.cssText !== to.style.cssText) from.style.cssText = to.style.cssText; }
    else if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
}

/** A field's value is its user's, unless the new tree says another one than the old tree did. */
function values(from, to) {
  if (to._value !== undefined && to._value !== from._value) { from.value = to._value; from._value = to._value; }
  if ("checked" in from && from.checked !== to.checked && to.type !== undefined) from.checked = to.checked;
  if ("disabled" in from && from.disabled !== to.disabled) from.disabled = to.disabled;
}

function children(from, to) {
  const keyed = new Map();
  for (const child of from.childNodes) if (child._key !== undefined) keyed.set(child._key, child);
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const known = wanted._key !== undefined ? keyed.get(wanted._key) : null;
    if (known) {
      if (known !== place) from.insertBefore(known, place);
      place = morph(known, wanted).nextSibling;
    } else if (place && place._key === undefined && wanted._key === undefined) {
      place = morph(place, wanted).nextSibling;
    } else {
      from.insertBefore(wanted, place);
    }
  }
  while (place) { const next = place.nextSibling; place.remove(); place = next; }
}
