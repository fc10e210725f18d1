import type { Socket } from "./connection";
import { ProvenSocket, type ProofOptions } from "./proof";

const key = "pollux.key";

/** Takes the one-time code out of the address, so that neither history nor a copied address keeps it. */
export function takeCode(): string | null {
  const match = /^#code=([\w-]{43})$/.exec(location.hash);
  if (!match?.[1]) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return match[1];
}

/** Puts a code back, for a page that is about to be loaded anew. */
export function putCode(code: string): void {
  history.replaceState(null, "", `${location.pathname}${location.search}#code=${code}`);
}

/** The key that an earlier code was exchanged for; null when this tab has none. */
export function storedKey(): string | null {
  const kept = sessionStorage.getItem(key) ?? "";
  return /^[\w-]{43}$/.test(kept) ? kept : null;
}

/**
 * Keeps the key for a reload of this tab, as long as the companion is there. Without it whoever has taken its port could serve
 * the reloaded page, and read the key there: then it stays in the memory of this page alone.
 */
export function keepKey(value: string): void {
  sessionStorage.setItem(key, value);
}

/** Forgets the kept key. */
export function forgetKey(): void {
  sessionStorage.removeItem(key);
}

/** Opens the page's WebSocket, which proves both sides to each other before anything else is said. */
export function dial(options: Omit<ProofOptions, "origin">): Socket {
  const address = new URL("/ws", location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  return new ProvenSocket(new WebSocket(address, ["pollux.v2"]) as unknown as Socket, { ...options, origin: location.origin });
}
