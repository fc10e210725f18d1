/** The separator that an absolute path of the companion's platform uses. */
export function separatorOf(path: string): "/" | "\\" {
  return /^[A-Za-z]:|^\\\\/.test(path) ? "\\" : "/";
}

/** The last part of a path. */
export function baseName(path: string): string {
  const sep = separatorOf(path);
  const trimmed = path.endsWith(sep) && path.length > 1 ? path.slice(0, -1) : path;
  return trimmed.slice(trimmed.lastIndexOf(sep) + 1) || trimmed;
}

/**
 * Text from elsewhere as it may stand in a line of the page: what cannot be seen, or would change how the rest is read
 * (controls, line ends, direction marks, zero-width characters), is spelled out.
 */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|^ | $/gu, (c) => {
    const code = c.codePointAt(0) ?? 0;
    if (code === 0x20) return "␠";
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

/** The last part of a path, for people. */
export function nameOf(path: string): string {
  return plain(baseName(path));
}

/** The folder that a path lies in; a root is its own folder. */
export function dirName(path: string): string {
  const sep = separatorOf(path);
  const at = path.lastIndexOf(sep);
  if (at < 0) return path;
  return path.slice(0, at) || sep;
}

/** Joins a folder and a name. */
export function joinPath(dir: string, name: string): string {
  const sep = separatorOf(dir);
  return dir.endsWith(sep) ? dir + name : dir + sep + name;
}

/** Whether `path` is `dir` or lies below it. */
export function isBelow(path: string, dir: string): boolean {
  const sep = separatorOf(dir);
  return path === dir || path.startsWith(dir.endsWith(sep) ? dir : dir + sep);
}

/** The path as a person reads it: relative to the root that holds it, led by the root's name when there are several. */
export function displayPath(path: string, roots: readonly { path: string; name: string }[]): string {
  return plain(relativePath(path, roots));
}

function relativePath(path: string, roots: readonly { path: string; name: string }[]): string {
  let best: { path: string; name: string } | undefined;
  for (const root of roots) {
    if (isBelow(path, root.path) && (!best || root.path.length > best.path.length)) best = root;
  }
  if (!best) return path;
  const sep = separatorOf(path);
  const rest = path === best.path ? "" : path.slice(best.path.length + (best.path.endsWith(sep) ? 0 : 1));
  if (roots.length < 2) return rest || best.name;
  return rest ? best.name + sep + rest : best.name;
}
